# A small image with tramai and nothing else: docker build -t tramai .
#   docker run --rm --init -v "$PWD:/home/tramai/here" tramai run hello.yaml
FROM python:3.13-slim-bookworm AS build
# As `ai,mcp`: docker build --build-arg EXTRAS=ai,postgres .
ARG EXTRAS=""
COPY . /source
RUN python -m venv /opt/tramai
RUN /opt/tramai/bin/python -m pip install --no-cache-dir "/source${EXTRAS:+[$EXTRAS]}"
# What installed the rest is not needed any more.
RUN /opt/tramai/bin/python -m pip uninstall --yes pip

FROM python:3.13-slim-bookworm
COPY --from=build /opt/tramai /opt/tramai
ENV PATH=/opt/tramai/bin:$PATH LANG=C.UTF-8
RUN useradd --create-home --uid 1000 tramai && install -d -o tramai -g tramai /home/tramai/here
USER 1000
# The store is made in the folder `.tramai` of this one: mount what should outlive the container.
WORKDIR /home/tramai/here
ENTRYPOINT ["tramai"]
CMD ["--help"]
