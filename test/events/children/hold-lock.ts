/** A server that holds a data directory until it is killed. */
import { lockDataDirectory } from '../../../src/events/store/data-lock.ts'

const lock = await lockDataDirectory(process.argv[2]!)
process.stdout.write('held\n')
setInterval(() => lock, 60_000)
