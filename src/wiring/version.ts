/** The version of this server. */
import manifest from '../../package.json' with { type: 'json' }

export const VERSION: string = manifest.version

export const USER_AGENT = `agent-server/${VERSION}`
