/** A server that shares its database with others, as a program: with the settings of its environment, until SIGTERM. */
import { once } from 'node:events'
import { startApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config/config.ts'

const stopped = once(process, 'SIGTERM')
const app = await startApp(readConfig(), { sharing: 'shared' })
await Promise.race([stopped, app.takenOver]).catch(() => (process.exitCode = 1))
await app.close()
process.exit()
