/** Opens a page in the browser of the desktop on which the command runs, where there is one. */
import { withoutKeys } from '../config/model-keys.ts'
import { HostEnvironment, startProcess } from '../lib/start-process.ts'

/** Does nothing without a desktop, and over SSH, where the desktop is that of another computer. A failure is silent: the link is printed. */
export function openOnDesktop(url: string, variables: NodeJS.ProcessEnv = process.env): void {
  const isMac = process.platform === 'darwin'
  const hasDesktop = isMac || Boolean(variables['DISPLAY'] || variables['WAYLAND_DISPLAY'])
  if (!hasDesktop || variables['SSH_CONNECTION']) return
  try {
    const env = HostEnvironment.ofPerson(withoutKeys(variables))
    const child = startProcess(isMac ? 'open' : 'xdg-open', [url], { env, detached: true, stdio: 'ignore' })
    child.on('error', () => {})
    child.unref()
  } catch {
    // as above
  }
}
