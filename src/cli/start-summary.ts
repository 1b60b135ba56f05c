/** What `serve` says when it has started: a summary for a person, or one line of the log for programs. Holds no key. */
import type { App } from '../wiring/start-server.ts'
import type { Config } from '../config/config.ts'
import { VERSION } from '../wiring/version.ts'
import type { KeyPlace } from './master-key.ts'
import { say } from './terminal/terminal.ts'

export type StartFacts = {
  readonly app: Pick<App, 'url' | 'logger' | 'missingSandbox'>
  readonly config: Config
  readonly key: KeyPlace
  readonly hasScriptedModel: boolean
}

const EVERYWHERE: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

const UNSAFE = 'run the server in a separate machine or container'

export function tellStart(startFacts: StartFacts): void {
  const { app, config, key } = startFacts
  if (config.logFormat === 'pretty') return say(summaryOf(startFacts))
  if (app.missingSandbox !== undefined) {
    app.logger.warn(`commands run on this host, as this user, without a sandbox (${app.missingSandbox}); ${UNSAFE}`)
  }
  const facts = {
    url: app.url,
    docs: `${app.url}/docs`,
    master_key: key.text,
    model: config.defaultLlm.model ?? null,
    isolation: app.missingSandbox === undefined ? 'bubblewrap' : 'none',
    data_dir: config.dataDir,
    workdir_base: config.workdirBase,
  }
  app.logger.info(facts, 'ready')
}

function summaryOf({ app: { url, missingSandbox }, config, key, hasScriptedModel }: StartFacts): string {
  const rows = [
    ['URL', EVERYWHERE.has(config.host) ? `${url} (also from other machines)` : url],
    ['Dashboard', `${url}/ui/ (agent-server dashboard prints a link that logs in)`],
    ['Docs', `${url}/docs`],
    ['Master key', key.text],
    ['Model', modelOf(config, hasScriptedModel)],
    [
      'Isolation',
      missingSandbox === undefined
        ? 'bubblewrap: commands run in a sandbox'
        : `none (${missingSandbox}): commands run on this host, as this user, without a sandbox; ${UNSAFE}`,
    ],
    ['Data', config.dataDir],
  ]
  const lines = rows.map(([name = '', value = '']) => `  ${name.padEnd(11)} ${value}`)
  const tryIt = `curl -H "Authorization: Bearer ${key.bearer ?? '<OPENHANDS_MASTER_KEY>'}" ${url}/info`
  return `\n  agent-server ${VERSION}\n\n${lines.join('\n')}\n\n  Try it:  ${tryIt}\n  Stop it: Ctrl+C\n\n`
}

function modelOf({ defaultLlm: { model, base_url } }: Config, isScripted: boolean): string {
  if (isScripted) return 'scripted: plays the same answers each time, and costs nothing'
  if (model === undefined) return 'none: set LLM_MODEL and LLM_API_KEY, or send llm_config with each conversation'
  return base_url === undefined ? model : `${model} at ${new URL(base_url).origin}`
}
