/** The desktop of the person who runs a command. */
import { HostEnvironment } from '../lib/start-process.ts'
import { withoutKeys } from './model-keys.ts'

/** Returns the environment for programs of the desktop; undefined without one, and over SSH, where it is that of another computer. */
export function desktopEnvironment(): HostEnvironment | undefined {
  const { DISPLAY, WAYLAND_DISPLAY, SSH_CONNECTION } = process.env
  const hasDesktop = process.platform === 'darwin' || Boolean(DISPLAY) || Boolean(WAYLAND_DISPLAY)
  return hasDesktop && !SSH_CONNECTION ? HostEnvironment.ofPerson(withoutKeys(process.env)) : undefined
}
