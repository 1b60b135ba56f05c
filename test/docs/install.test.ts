/** docs/install.md: what of it can be checked without starting anything. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { findCommand } from '../../scripts/provide.mjs'
import { readArguments } from '../../src/cli/command-line/read-arguments.ts'
import { VARIABLES } from '../../src/config/variables.ts'

const doc = await readFile(join(import.meta.dirname, '../../docs/install.md'), 'utf8')
const unit = /^```ini\n(.*?)^```/ms.exec(doc)![1]!

const ANALYZE = findCommand(['systemd-analyze'])

test.runIf(ANALYZE !== undefined)('systemd accepts the unit', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'agent-server-unit-'))
  const path = join(directory, 'agent-server.service')
  await writeFile(path, unit.replace('/usr/local/bin/agent-server', '/bin/true'))
  const { stdout, stderr } = await promisify(execFile)(ANALYZE!, ['verify', '--man=no', path])
  // Of an unknown setting it only warns.
  expect(stdout + stderr).toBe('')
  await rm(directory, { recursive: true })
})

test('the unit starts the server with options and variables that exist', () => {
  const [, args] = /^ExecStart=\S+ (.*)$/m.exec(unit)!
  expect(readArguments(args!.split(' ')).name).toBe('serve')
  const names = [...unit.matchAll(/^Environment=(\w+?)(?:_FILE)?=/gm)].map(([, name]) => name)
  expect(names.length).toBeGreaterThan(2)
  for (const name of names) expect(Object.keys(VARIABLES)).toContain(name)
})

test('each listed archive is made by the release', async () => {
  const release = await readFile(join(import.meta.dirname, '../../scripts/release.ts'), 'utf8')
  const listed = [...doc.matchAll(/`agent-server-<version>-(\w+)-(\w+)\.tar\.gz`/g)]
  const made = [...release.matchAll(/platform: '(\w+)',\s+arch: '(\w+)'/g)]
  expect(listed.length).toBeGreaterThan(2)
  expect(listed.map(([, ...names]) => names)).toEqual(made.map(([, ...names]) => names))
})
