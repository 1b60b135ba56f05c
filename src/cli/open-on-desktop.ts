/** Opens a page in the browser of the desktop on which the command runs, where there is one. */
import { desktopEnvironment } from '../config/desktop.ts'
import { startProcess } from '../lib/start-process.ts'

/** Never throws: a link that does not open can still be read. */
export function openOnDesktop(url: string): void {
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
