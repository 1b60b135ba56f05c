/** `agent-server dashboard`: prints a link that logs a browser in once, and opens it on a desktop, so that no key is typed or kept there. */
import { createClient } from '../client/client.ts'
import { createReader } from '../config/environment.ts'
import type { DashboardInvocation } from './command-line/read-arguments.ts'
import { keyOfThisMachine } from './master-key.ts'
import { givenServerKey } from './settings/run-settings.ts'
import { say, sayError } from './terminal/terminal.ts'
import { desktopEnvironment } from '../config/desktop.ts'
import { startProcess } from '../lib/start-process.ts'

const DEFAULT_PORT = '8000'

/** Throws an `AgentServerError` if the server does not answer, and a `ConfigError` or a `UsageError` without a key. */
export async function dashboard({ server, apiKey: givenKey }: DashboardInvocation): Promise<void> {
  const port = createReader({})('OPENHANDS_SERVER_PORT') ?? DEFAULT_PORT
  const baseUrl = server ?? `http://127.0.0.1:${port}`
  const apiKey = (await givenServerKey(givenKey)) ?? (await keyOfThisMachine())
  const { code } = await createClient({ baseUrl, apiKey, maxRetries: 0 }).logins.createCode()
  const link = `${baseUrl.replace(/(?<!\/)\/+$/, '')}/ui/#login=${code}`
  say(`${link}\n`)
  openOnDesktop(link)
  sayError('The link works once, and for a minute.\n')
}

/** Never throws: a link that does not open can still be read. */
function openOnDesktop(url: string): void {
  const env = desktopEnvironment()
  if (!env) return
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open'
  try {
    const child = startProcess(program, [url], { env, detached: true, stdio: 'ignore' })
    child.on('error', () => {})
    child.unref()
  } catch {
    // The machine lacks something, as `startProcess` says.
  }
}
