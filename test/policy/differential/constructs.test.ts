/** Each node type of the parser and each place where bash evaluates arithmetic, in the gate and in a real bash. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { SyntaxNode } from 'unbash'
import { forEachChild, parse } from 'unbash'
import { afterAll, describe, expect, test } from 'vitest'
import { PermissionRules } from '../../../src/contract/values/permission.ts'
import type { GateRules } from '../../../src/policy/rules/gate-rules.ts'
import { PermissionGate } from '../../../src/policy/permissions.ts'
import { ruleSetOf } from '../../../src/policy/rules/rule-set.ts'
import { UNDERSTOOD } from '../../../src/policy/shell/understood.ts'
import { effort, PATIENCE_MS } from '../../support/patience.ts'
import { EVALUATED, NODES, PAYLOADS } from './constructs.ts'
import { RealBash } from './real-bash.ts'

const bash = new RealBash()
afterAll(() => bash[Symbol.dispose]())

const gate = new PermissionGate({
  workdir: () => bash.workdir,
  homes: [bash.home],
  accessOf: () => ({ kind: 'other' }),
})
const BUILTINS = ['ok', 'declare', 'typeset', 'export', 'readonly', 'printf', 'read', 'unset', 'exec', 'set', 'wait']
const RULES: readonly GateRules[] = (
  [
    { mode: 'default', rules: { allow: BUILTINS.map((name) => `Bash(${name}:*)`) } },
    { mode: 'plan', rules: {} },
    { mode: 'deny', rules: {} },
    { mode: 'bypass', rules: { deny: ['Bash(evil:*)'] } },
  ] as const
).map(({ mode, rules }) => ({ mode, confirmation: false, rules: ruleSetOf(PermissionRules.parse(rules)) }))

/** Ways in which a stranger writes the value of the variable that a payload may name. */
const BEFORE = ['', "y='a[$(evil)]'; "]

function modesThatRun(command: string): string[] {
  const access = { kind: 'command', command, cwd: bash.workdir } as const
  return RULES.filter((rules) => gate.verdictOn('Bash', access, rules, false).behavior === 'allow').map(
    ({ mode }) => mode,
  )
}

const linesOf = (template: string): string[] =>
  BEFORE.flatMap((before) => PAYLOADS.map((payload) => before + template.replaceAll('PAYLOAD', () => payload)))

describe('the gate knows the parser', () => {
  const declared = readFileSync(join(createRequire(import.meta.url).resolve('unbash'), '../types.d.ts'), 'utf8')
  const names = [...declared.matchAll(/readonly type: "(\w+)"/g)].map(([, name]) => name)

  test('every node type of the installed parser is understood, and none that it does not have', () => {
    expect(new Set(Object.keys(UNDERSTOOD))).toEqual(new Set(names))
  })

  test.each(Object.entries(NODES))('there is a command line with a %s', (type, template) => {
    expect(PAYLOADS.flatMap((payload) => typesIn(template.replaceAll('PAYLOAD', payload)))).toContain(type)
  })

  test('a node type, a property or a value that the gate does not know is not understood', async () => {
    const { readCommandLine } = await import('../../../src/policy/shell/read-command-line.ts')
    const read = (node: object) => {
      const commands = [node] as unknown as ReturnType<typeof parse>['commands']
      const parser = { parse: () => ({ type: 'Script', pos: 0, end: 0, shebang: undefined, commands }) as const }
      return readCommandLine('x', { parser, cwd: '/', homes: [] }).hidden
    }
    const span = { pos: 0, end: 0 }
    expect(read({ type: 'BraceGroup', body: { type: 'CompoundList', commands: [], ...span }, ...span })).toBeUndefined()
    expect(read({ type: 'Funsub', ...span })).toMatch(/not known/)
    expect(
      read({ type: 'BraceGroup', body: { type: 'CompoundList', commands: [], ...span }, also: [], ...span }),
    ).toMatch(/not known/)
    expect(read({ type: 'BraceGroup', body: 'evil', ...span })).toMatch(/not known/)
  })
})

test.each([...Object.entries(NODES), ...Object.entries(EVALUATED)])(
  'no command of a stranger runs by %s',
  async (_, template) => {
    for (const rules of RULES) await gate.prepare(rules)
    const free = linesOf(template).filter((line) => modesThatRun(line).length > 0)
    expect(bash.harmOfAny(free, () => true)).toBeUndefined()
  },
  PATIENCE_MS,
)

test('the harmful line among others is found, also behind one that hangs or ends its shell', () => {
  for (const first of ['ok', 'exit 1', 'kill -KILL $BASHPID', 'kill -KILL $$'])
    expect(
      bash.harmOfAny([first, 'ok $(evil)', 'ok'], () => true),
      first,
    ).toMatch(/^"ok \$\(evil\)": it ran/)
})

test(
  'the listed places do run commands in a real bash',
  () => {
    const entries = Object.entries(EVALUATED)
    const step = Math.ceil(entries.length / effort(6, entries.length))
    for (let at = Math.floor(Date.now() / 1000) % step; at < entries.length; at += step) {
      const [place = '', template = ''] = entries[at] ?? []
      expect(
        linesOf(template).some((line) => bash.harmOf(line, () => true) !== undefined),
        place,
      ).toBe(true)
    }
  },
  effort(PATIENCE_MS, 600_000),
)

function typesIn(line: string): string[] {
  const types: string[] = []
  const visit = (node: SyntaxNode) => {
    types.push(node.type)
    forEachChild(node, visit)
  }
  visit(parse(line))
  return types
}
