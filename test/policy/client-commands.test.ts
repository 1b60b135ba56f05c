/** Commands that clients run themselves: nobody is asked about them, but deny rules hold. */
import { expect, test } from 'vitest'
import { refusalOfCommand } from '../../src/policy/client-commands.ts'
import { PermissionGate } from '../../src/policy/permissions.ts'
import type { GateRules } from '../../src/policy/rules/gate-rules.ts'
import { ruleSetOf } from '../../src/policy/rules/rule-set.ts'

const UNSURE = 'it is not certain that the deny rule Bash(rm:*) does not hold for it'

test.each<[rule: string, command: string, deny: readonly string[], refusal: string | undefined]>([
  ['runs without a deny rule, whatever it is', 'eval "$x"', [], undefined],
  ['runs if no deny rule is about it', 'touch a', ['Bash(rm:*)'], undefined],
  ['is refused if a deny rule is about it', 'rm a', ['Bash(rm:*)'], 'The rule Bash(rm:*) denies it.'],
  [
    'is refused if a deny rule may be about it',
    'eval "$x"',
    ['Bash(rm:*)'],
    `Write the command more plainly, or change the rules: ${UNSURE}.`,
  ],
])('a command of a client %s', async (_, command, deny, refusal) => {
  const gate = new PermissionGate({ workdir: () => '/work', homes: [], accessOf: () => ({ kind: 'none' }) })
  const rules: GateRules = {
    mode: 'plan',
    confirmation: true,
    isStrangers: true,
    rules: ruleSetOf({ allow: [], ask: ['Bash'], deny: [...deny] }),
  }
  expect(await refusalOfCommand(gate, rules, { command, cwd: '/work' })).toBe(refusal)
})
