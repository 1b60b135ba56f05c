/** A server that holds a data directory until it is killed. */
import { lockDataDirectory } from '../../../../src/storage/files/directory/data-lock.ts'

const lock = await lockDataDirectory(process.argv[2]!)
process.stdout.write('held\n')
setInterval(() => lock, 60_000)
