/** What the gate lets run is run by a real bash: it must do nothing that the rules do not allow. */
import { relative } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { PermissionRules } from '../../../src/contract/values/permission.ts'
import type { GateRules } from '../../../src/policy/rules/gate-rules.ts'
import { PermissionGate } from '../../../src/policy/permissions.ts'
import { ruleSetOf } from '../../../src/policy/rules/rule-set.ts'
import { createRandom } from '../../support/random.ts'
import { effort, PATIENCE_MS } from '../../support/patience.ts'
import { CommandLines } from './command-lines.ts'
import { RealBash } from './real-bash.ts'

const bash = new RealBash()
afterAll(() => bash[Symbol.dispose]())

const gate = new PermissionGate({
  workdir: () => bash.workdir,
  homes: [bash.home],
  accessOf: () => ({ kind: 'other' }),
})
/** To repeat a failure: `SEED=…`. */
const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000)

const CASES = {
  'what default mode lets run without a question': {
    mode: 'default',
    rules: { allow: ['Bash(ok:*)', 'Edit(src/**)'] },
    mayChange: (path: string) => path.startsWith('src'),
  },
  'what allow rules for programs that only read let run': {
    mode: 'default',
    rules: { allow: ['Bash(ok:*)', 'Bash(echo:*)', 'Bash(ls *)'] },
    mayChange: () => false,
  },
  'what deny rules let run in bypass': {
    mode: 'bypass',
    rules: { deny: ['Bash(evil:*)', 'Bash(run)', 'Read(//OUTSIDE/**)', 'Read(~/**)', 'Edit(sub/**)'] },
    mayChange: (path: string) => !/^(sub|\.\.)(\/|$)/.test(path),
  },
} as const

test.each(Object.entries(CASES))(
  '%s does nothing else in a real bash',
  async (_, { mode, rules, mayChange }) => {
    const given = JSON.parse(JSON.stringify(rules).replace('//OUTSIDE', `/${bash.outside}`)) as object
    const decided: GateRules = { mode, confirmation: false, rules: ruleSetOf(PermissionRules.parse(given)) }
    await gate.prepare(decided)
    const isFree = (path: string) => mayChange(relative(bash.workdir, path))
    const lines = new CommandLines(createRandom(seed))
    let runs = effort(20, 5000)
    for (let tries = 0; runs > 0 && tries < 2_000_000; tries += 1) {
      const command = lines.line()
      const verdict = gate.verdictOn('Bash', { kind: 'command', command, cwd: bash.workdir }, decided, false)
      if (verdict.behavior !== 'allow') continue
      runs -= 1
      expect(bash.harmOf(command, isFree), `seed ${seed}: ${JSON.stringify(command)}`).toBeUndefined()
    }
  },
  effort(PATIENCE_MS, 1_800_000),
)
