/** The contract tests of `a2a-proof`, by both bindings of A2A. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { z } from 'zod'
import type { CaseResult, ProgramPlace } from './run-program.ts'

const CONTRACT = join(import.meta.dirname, 'a2a-contract.yaml')
const BINDINGS = ['JSONRPC', 'HTTP+JSON']
const RUN_MS = 4 * 60_000

const Failures = z.array(z.string())
const Trial = z.object({ error: z.string().nullish(), turns: z.array(z.object({ failures: Failures })) })
const Report = z.object({
  card: z.object({ failures: Failures }).nullish(),
  scenarios: z.array(z.object({ name: z.string(), passed: z.boolean(), trials: z.array(Trial) })),
})

/** Returns a case for each scenario and binding, and one for a wrong key. */
export async function runA2aProof({ env, work }: ProgramPlace): Promise<CaseResult[]> {
  const results: CaseResult[] = []
  for (const binding of BINDINGS) {
    const { report, output } = await prove(binding, env, work)
    if (!report) results.push({ case: `${binding}: the contract is tested`, fault: output })
    const faults = report?.card?.failures ?? []
    if (report) results.push({ case: `${binding}: card`, fault: faults.length > 0 ? faults.join('\n') : undefined })
    for (const { name, passed, trials } of report?.scenarios ?? []) {
      const why = trials.flatMap(({ error, turns }) => [error ?? '', ...turns.flatMap(({ failures }) => failures)])
      results.push({ case: `${binding}: ${name}`, fault: passed ? undefined : why.filter(Boolean).join('\n') })
    }
    const refused = await prove(binding, { ...env, AGENT_SERVER_KEY: 'wrong-key-0123456789' }, work, 'text')
    const isRefused = !refused.report?.scenarios.some(({ passed }) => passed) && /401|key/i.test(refused.output)
    results.push({ case: `${binding}: wrong key`, fault: isRefused ? undefined : refused.output })
  }
  return results
}

/** `report` is undefined if it ended without one. */
async function prove(binding: string, env: ProgramPlace['env'], work: string, scenario?: string) {
  const file = join(work, `a2a-${binding.replace('+', '-')}${scenario ?? ''}.json`)
  const only = scenario === undefined ? [] : ['--scenario', scenario]
  const args = ['run', CONTRACT, '--transport', binding, '--format', 'json', '--output', file, ...only]
  const { all } = await execa('a2a-proof', args, {
    env,
    cwd: work,
    all: true,
    stdin: 'ignore',
    reject: false,
    timeout: RUN_MS,
  })
  const text = readIfThere(file)
  return { report: text === undefined ? undefined : Report.parse(JSON.parse(text)), output: `${all}\n${text ?? ''}` }
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined // It has refused the contract, and said why.
  }
}
