/**
 * Runs the tests again and again next to busy loops: a test that fails once is a defect.
 *
 * `npm run repeat -- --times 10 --busy 4` runs `npm test`, and with paths only these files. Each run is one line of
 * `--log FILE` and its output is next to it; with the same file, an interrupted series continues where it stopped.
 */
import type { ChildProcess, StdioOptions } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const ROOT = join(import.meta.dirname, '..')
/** The unit of `/proc/self/stat`: the processor time of children that have ended, in hundredths of a second. */
const TICKS_PER_SECOND = 100

type Run = { readonly passed: boolean; readonly seconds: number; readonly cpuSeconds: number; readonly busy: number }

const { values, positionals: files } = parseArgs({
  allowPositionals: true,
  options: {
    times: { type: 'string', default: '10' },
    busy: { type: 'string', default: '0' },
    log: { type: 'string', default: join(tmpdir(), 'agent-server-repeat.jsonl') },
  },
})
const [times, busy] = [wholeNumber('times', values.times), wholeNumber('busy', values.busy)]
const log = resolve(values.log)
mkdirSync(dirname(log), { recursive: true })
const runs: Run[] = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').filter(Boolean).map(parseRun) : []
const loops = Array.from({ length: busy }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }))
let tests: ChildProcess | undefined
// This runs also when it is interrupted.
process.on('exit', () => {
  loops.forEach((loop) => loop.kill('SIGKILL'))
  tests?.kill()
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1))

while (runs.length < times) {
  const run = await runOnce(`${log}.${runs.length + 1}.txt`)
  runs.push(run)
  appendFileSync(log, `${JSON.stringify(run)}\n`)
  const { passed, seconds, cpuSeconds } = run
  console.log(`${runs.length}: ${passed ? 'passed' : 'FAILED'} in ${seconds} s, ${cpuSeconds} s of processor time`)
}
const failed = runs.filter(({ passed }) => !passed).length
console.log(`${runs.length - failed} of ${runs.length} runs passed. See ${log}`)
process.exit(failed === 0 ? 0 : 1)

async function runOnce(output: string): Promise<Run> {
  const before = cpuOfChildren()
  const began = performance.now()
  const file = openSync(output, 'w')
  const stdio: StdioOptions = ['ignore', file, file]
  tests = spawn(process.execPath, [join(ROOT, 'scripts/test.ts'), ...files], { cwd: ROOT, stdio })
  const [status] = (await once(tests, 'close')) as [number | null]
  closeSync(file)
  const seconds = Math.round((performance.now() - began) / 1000)
  return { passed: status === 0, seconds, cpuSeconds: Math.round(cpuOfChildren() - before), busy }
}

/** The busy loops do not count: they have not ended. */
function cpuOfChildren(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [user = 0, system = 0] = fields.slice(13, 15)
  return (user + system) / TICKS_PER_SECOND
}

function wholeNumber(name: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`--${name} needs a whole number, for example --${name} 4`)
  return Number(text)
}

function parseRun(line: string): Run {
  const run: Run = JSON.parse(line)
  return run
}
