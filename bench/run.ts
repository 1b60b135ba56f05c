/**
 * `npm run bench [-- name… --write]`: measures on this machine and prints a table; `--write` puts it into bench/README.md. A name
 * such as `dashboard` includes `dashboard:tabs`.
 * `npm run bench -- --compare [REF] [row…]` measures the difference to another commit instead.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { benchActive } from './active.ts'
import { benchCli } from './cli.ts'
import { benchCluster } from './cluster.ts'
import { benchChat } from './chat.ts'
import { benchCommands } from './client-commands.ts'
import { benchCallbacks } from './callbacks.ts'
import { benchChurn } from './churn.ts'
import { compare, readAsked } from './compare/compare.ts'
import { benchCreate } from './create.ts'
import { benchDashboard } from './dashboard.ts'
import { benchDashboardSize } from './dashboard-size.ts'
import { benchDashboardTabs } from './dashboard-tabs.ts'
import { benchDeltas } from './deltas.ts'
import { benchEventLoop } from './event-loop.ts'
import { benchEventPage } from './event-page.ts'
import { benchFiles } from './files.ts'
import { benchSnapshots } from './snapshots.ts'
import { benchSnapshotSteps } from './snapshot-steps.ts'
import { benchHostileAnswers } from './hostile-answers.ts'
import { benchLimits } from './limits.ts'
import { benchMcp } from './mcp.ts'
import { benchLongLog } from './long-log.ts'
import { benchNeighbours } from './neighbours.ts'
import { benchNetwork } from './network.ts'
import { benchOpen } from './open.ts'
import { benchPrefix } from './prefix.ts'
import { benchPresets } from './presets.ts'
import { benchScale } from './scale.ts'
import { benchSdk } from './sdk.ts'
import { benchStart } from './start.ts'
import { benchSteps } from './steps.ts'
import { useOwnTemporary } from '../scripts/own-temporary.ts'
import type { Row } from './table.ts'
import { toMarkdown } from './table.ts'

const BENCHES: Readonly<Record<string, () => Promise<Row[]>>> = {
  steps: benchSteps,
  presets: benchPresets,
  prefix: benchPrefix,
  mcp: benchMcp,
  deltas: benchDeltas,
  chat: benchChat,
  create: benchCreate,
  open: benchOpen,
  files: benchFiles,
  snapshots: async () => [...(await benchSnapshots()), ...(await benchSnapshotSteps())],
  commands: benchCommands,
  network: benchNetwork,
  limits: benchLimits,
  neighbours: benchNeighbours,
  'hostile-answers': benchHostileAnswers,
  callbacks: benchCallbacks,
  churn: benchChurn,
  start: benchStart,
  cli: benchCli,
  scale: benchScale,
  active: benchActive,
  'event-loop': benchEventLoop,
  'event-page': () => benchEventPage(),
  'long-log': benchLongLog,
  dashboard: benchDashboard,
  'dashboard:tabs': benchDashboardTabs,
  'dashboard:size': benchDashboardSize,
  sdk: benchSdk,
  cluster: benchCluster,
}

useOwnTemporary()

const PAGE = join(import.meta.dirname, 'README.md')

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false }, compare: { type: 'boolean', default: false } },
})
if (values.compare) await printComparison()
else await printTable()

async function printComparison(): Promise<void> {
  try {
    if (values.write) throw new Error('--write is for the table of all benchmarks: leave it out.')
    if (!(await compare(readAsked(positionals)))) process.exitCode = 1
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  }
}

async function printTable(): Promise<void> {
  const unknown = positionals.filter((name) => !(name in BENCHES))
  if (unknown.length) {
    console.error(`There is no benchmark ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}.`)
    process.exit(1)
  }
  if (values.write && positionals.length > 0) {
    console.error('--write replaces the whole table, so it needs all benchmarks: leave out the names.')
    process.exit(1)
  }
  const rows: Row[] = []
  for (const [name, bench] of Object.entries(BENCHES)) {
    if (!positionals.length || positionals.some((asked) => name === asked || name.startsWith(`${asked}:`)))
      rows.push(...(await bench()))
  }
  const table = toMarkdown(rows)
  console.log(table)
  if (values.write) writeTable(table)
}

/** Replaces the text between the two marks of the page. */
function writeTable(table: string): void {
  const machine = `${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.version}`
  const text = readFileSync(PAGE, 'utf8')
  const marked = /(<!-- bench -->\n).*?(<!-- \/bench -->)/s
  if (!marked.test(text)) throw new Error('bench/README.md lacks the marks <!-- bench --> … <!-- /bench -->')
  writeFileSync(PAGE, text.replace(marked, `$1Medians on ${machine}:\n\n${table}\n$2`))
}
