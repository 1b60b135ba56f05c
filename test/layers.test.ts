/** The architecture, checked: arrows point down, packages stay in their folder, files are named for what they hold. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PROTOCOL_NAMES } from '../src/protocols/protocol-routes.ts'
import { modulesOf } from './layers/folder-arrows.ts'
import { parseSource, readSources } from './layers/imports.ts'
import { findBreaches, LEVELS } from './layers/rules.ts'

/** The fold, and the decisions about it. */
const CORE = ['state/state.ts', 'state/intents.ts']
const SRC = join(import.meta.dirname, '../src')
const DESCRIPTION = join(import.meta.dirname, '../src/README.md')

/** Less was seen: then the reading is broken, not the architecture fine. */
const MINIMUM_FILES = 60

describe('src', () => {
  const files = readSources(SRC)

  test('keeps to the rules', () => {
    expect(findBreaches(files)).toEqual([])
  })

  test('is described in the documentation as it is', () => {
    const chain = LEVELS.map((level) => level.map((unit) => `\`${unit}\``).join(', ')).join(' < ')
    expect(readFileSync(DESCRIPTION, 'utf8').replaceAll(/\s+/g, ' ')).toContain(`imports point down: ${chain}. `)
  })

  test('was read whole', () => {
    expect(files.length).toBeGreaterThan(MINIMUM_FILES)
    // A file of ours imports something or is imported; a parser that finds nothing would make every rule hold.
    const imports = files.flatMap((file) => file.imports)
    expect(imports.length).toBeGreaterThan(2 * files.length)
    const folders = readdirSync(SRC, { withFileTypes: true }).filter(
      (entry) => entry.isDirectory() && entry.name !== 'web',
    )
    expect(folders.filter(({ name }) => !files.some((file) => file.path.startsWith(`${name}/`)))).toEqual([])
  })

  test('answers what waits with the rights of the key, whatever the protocol', () => {
    const answering = files.filter(
      ({ path }) => path.startsWith('protocols/') && readFileSync(join(SRC, path), 'utf8').includes('requests.answer('),
    )
    // Editors are clients of the API.
    const owners = ['protocols/acp/editor-requests.ts', 'protocols/shared/answer-as.ts']
    expect(answering.map(({ path }) => path).sort()).toEqual(owners)
  })

  test('has protocols that can be left out, each with its folder, its line of the list, and its command', () => {
    const list = 'protocols/protocol-routes.ts'
    const programs = ['cli/acp/acp.ts', 'cli/mcp-server/client-agents.ts', 'cli/mcp-server/mcp-server.ts']
    const folderOf = (path: string) => /^protocols\/(?!shared\/|items\/)[\w-]+(?=\/)/.exec(path)?.[0]
    const users = files.filter(({ path, imports }) =>
      imports.some((imported) => ![undefined, folderOf(path)].includes(folderOf(imported))),
    )
    expect(users.map(({ path }) => path).sort()).toEqual([...programs, list])
    const commands = files.filter(({ imports }) =>
      imports.some((imported) => /^cli\/(acp|mcp-server)\//.test(imported)),
    )
    expect(commands.map(({ path }) => path).sort()).toEqual(['cli/mcp-server/mcp-server.ts', 'cli/programs.ts'])
    expect(readFileSync(join(SRC, list), 'utf8').match(/import\('/g)).toHaveLength(PROTOCOL_NAMES.length)
  })

  test('loads of a protocol at most five of its files, and no package for it, before somebody uses it', () => {
    const byPath = new Map(files.map((file) => [file.path, file]))
    const loadedBy = (path: string, seen = new Set<string>()): Set<string> => {
      const { loads = [], defers = [] } = byPath.get(path) ?? {}
      for (const next of seen.add(path) && loads.filter((each) => !defers.includes(each) && !seen.has(each)))
        loadedBy(next, seen)
      return seen
    }
    for (const path of byPath.get('protocols/protocol-routes.ts')?.defers ?? []) {
      const loaded = [...loadedBy(path)]
      const own = loaded.filter((each) => /^protocols\/(?!shared\/)/.test(each))
      expect({ path, count: own.length }).toSatisfy(({ count }) => count <= 5)
      expect(loaded.filter((each) => each.startsWith('@'))).toEqual([])
    }
  })

  test('keeps in lib only what two folders use, in at most 20 files', () => {
    const own = files.filter(({ path }) => path.startsWith('lib/')).map(({ path }) => path)
    const foldersThatUse = (path: string) =>
      new Set(files.filter(({ imports }) => imports.includes(path)).map((user) => user.path.split('/')[0]))
    expect(own.filter((path) => foldersThatUse(path).size < 2)).toEqual([])
    expect(own.length).toBeLessThanOrEqual(20)
  })

  test('has a core that loads at most 95 modules, and none that knows tools, processes, files or models', () => {
    const modules = CORE.flatMap((path) => [...modulesOf(path, files)])
    expect(modules).toContain('contract/events/event.ts')
    expect(modules.filter((path) => /^(tools|shell|files|llm|mcp|storage|agent)\/|^unbash$/.test(path))).toEqual([])
    for (const path of CORE) expect(modulesOf(path, files).size).toBeLessThanOrEqual(95)
  })

  test('has each folder on one level only', () => {
    expect(new Set(LEVELS.flat()).size).toBe(LEVELS.flat().length)
  })
})

describe('the rules find', () => {
  const OK = {
    'contract/event.ts': '',
    'lib/queue.ts': '',
    'events/event-log.ts': '',
    'llm/llm.ts': '',
    'http/server.ts': '',
    'storage/files/file-storage.ts': '',
    'tools/tool.ts': '',
    'protocols/openai/x.ts': '',
  }

  test.each([
    ['an import upwards', 'events/a.ts', "import { x } from '../http/server.ts'", 'which is above it'],
    ['a type-only import upwards', 'events/a.ts', "import type { X } from '../http/server.ts'", 'which is above it'],
    ['an inline type import upwards', 'events/a.ts', "type X = import('../http/server.ts').X", 'which is above it'],
    ['a dynamic import upwards', 'events/a.ts', "const x = await import('../http/server.ts')", 'which is above it'],
    [
      'a re-export upwards',
      'events/a.ts',
      "export { x } from '../http/server.ts'\nexport const y = 1",
      'which is above it',
    ],
    [
      'a re-export of everything upwards',
      'events/a.ts',
      "export * from '../http/server.ts'\nexport const y = 1",
      'which is above it',
    ],
    ['an import from the folder beside', 'events/a.ts', "import { x } from '../llm/llm.ts'", 'which is beside it'],
    ['contract importing lib', 'contract/a.ts', "import { x } from '../lib/queue.ts'", 'which is beside it'],
    ['contract importing a built-in', 'contract/a.ts', "import { x } from 'node:fs'", 'contract imports zod only'],
    ['an import that is computed', 'events/a.ts', 'const x = await import(`../${name}.ts`)', 'has no home'],
    [
      'a package away from home',
      'events/a.ts',
      "import type { FastifyInstance } from 'fastify'",
      'which lives in http',
    ],
    [
      'a lazily loaded package away from home',
      'http/a.ts',
      "const x = await import('openai/resources')",
      'which lives in llm',
    ],
    ['a required package away from home', 'http/a.ts', "const x = require('openai')", 'which lives in llm'],
    ['a package without a home', 'http/a.ts', "import x from '@left/pad'", '@left/pad, which has no home'],
    [
      'a built-in that has a home, elsewhere',
      'http/a.ts',
      "import { DatabaseSync } from 'node:sqlite'",
      'which lives in storage',
    ],
    [
      'a process that is started elsewhere',
      'tools/a.ts',
      "import { spawn } from 'node:child_process'",
      'which lives in lib/start-process.ts',
    ],
    ['even beside the one that may', 'lib/a.ts', "const x = await import('node:child_process')", 'start-process.ts'],
    ['by its name', 'http/a.ts', "const x = process.getBuiltinModule('node:child_process')", 'start-process.ts'],
    ['a process that becomes another', 'http/a.ts', "process.execve('/bin/sh')", 'which lives in cli/terminal/exit.ts'],
    [
      'a thread elsewhere',
      'mcp/a.ts',
      "import { Worker } from 'node:worker_threads'",
      'which lives in agent and storage',
    ],
    ['a cluster', 'http/a.ts', "import cluster from 'node:cluster'", 'which lives in no file of src'],
    [
      'a protocol that stands on another one',
      'protocols/ag-ui/a.ts',
      "import { x } from '../openai/x.ts'",
      'protocols/shared',
    ],
    [
      'the client reaching into the server',
      'client/client.ts',
      "import { x } from '../events/event-log.ts'",
      'which is beside it',
    ],
    ['a built-in in the client', 'client/client.ts', "import { x } from 'node:fs'", 'the client works in browsers'],
    [
      'a storage reached past its interface',
      'http/a.ts',
      "import { x } from '../storage/files/file-storage.ts'",
      'only wiring/services.ts chooses',
    ],
    [
      'a subfolder loading a value of the folder around it',
      'llm/chat/a.ts',
      "import { x } from '../llm.ts'",
      'of which it may import types only',
    ],
    [
      'a subfolder loading a value of the folder around that one',
      'llm/chat/a/b.ts',
      "const x = await import('../../llm.ts')",
      'of which it may import types only',
    ],
    ['an import of what is not there', 'http/a.ts', "import { x } from './gone.ts'", 'which is not in src'],
    ['process.env', 'http/a.ts', 'const x = process.env.X', 'reads the environment'],
    ['process.env in other spellings', 'http/a.ts', "const x = process?.['env']", 'reads the environment'],
    ['process taken apart', 'http/a.ts', 'const { env: all } = process', 'reads the environment'],
    ['the environment imported', 'http/a.ts', "import { env } from 'node:process'", 'reads the environment'],
    ['a barrel', 'http/a.ts', "export { x } from './server.ts'\nexport * from './server.ts'", 'is a barrel'],
    ['an index', 'http/index.ts', 'export const x = 1', 'is a barrel'],
    ['a name that says nothing', 'http/utils.ts', 'export const x = 1', 'says nothing'],
    ['a folder on no level', 'stuff/a.ts', 'export const x = 1', 'is on no level'],
  ])('%s', (_rule, path, text, breach) => {
    expect(breachesWith({ ...OK, [path]: text })).toEqual([expect.stringContaining(breach)])
  })

  test('a circle of types alone', () => {
    const files = {
      ...OK,
      'http/a.ts': "import type { B } from './b.ts'",
      'http/b.ts': "import type { A } from './a.ts'",
    }
    expect(breachesWith(files)).toEqual(['http/a.ts -> http/b.ts -> http/a.ts is a circle'])
  })

  test('a core that knows what is outside', () => {
    const files = { ...OK, 'state/a.ts': "import type { Tool } from '../llm/llm.ts'" }
    expect(breachesWith(files)).toEqual([expect.stringContaining('the core imports contract, lib and the rules')])
  })

  test('folders that import each other, of which neither contains the other', () => {
    const files = {
      ...OK,
      'http/a/one.ts': "import '../b/two.ts'",
      'http/b/two.ts': '',
      'http/b/three.ts': "import type { X } from '../a/four.ts'",
      'http/a/four.ts': "import type { Y } from '../server.ts'",
    }
    expect(breachesWith(files)).toEqual([expect.stringContaining('http/a and http/b import each other')])
  })

  test('there are no unused exceptions', () => {
    const files = {
      ...OK,
      'config/config.ts': 'const x = process.env.X',
      'http/a.ts':
        "import './a/b.ts'\nimport Fastify from 'fastify'\nimport { z } from 'zod'\nimport { join } from 'node:path'\nimport { x } from './server.ts'",
      'http/a/b.ts': "import type { Y } from '../server.ts'\nexport type { Z } from '../server.ts'\nimport './c.ts'",
      'http/a/c.ts': '',
      'app.ts':
        "import { x } from './http/server.ts'\nimport type { Config } from './config/config.ts'\nimport manifest from '../package.json' with { type: 'json' }",
      'index.ts': "export { x } from './app.ts'",
    }
    expect(breachesWith(files)).toEqual([])
  })

  test('a file it cannot parse', () => {
    expect(() => parseSource('http/a.ts', 'const = ')).toThrow(/Unexpected token/i)
  })
})

function breachesWith(files: Readonly<Record<string, string>>): string[] {
  return findBreaches(Object.entries(files).map(([path, text]) => parseSource(path, text)))
}
