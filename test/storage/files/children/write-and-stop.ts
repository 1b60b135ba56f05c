/** A process that ends with its storage, as soon as nothing else keeps it. */
import { openFileStorage } from '../../../../src/storage/files/file-storage.ts'
import { uuid7 } from '../../../../src/lib/uuid7.ts'

const storage = await openFileStorage({ directory: process.argv[2]!, operatorKeys: ['a key'], onFault: () => {} })
await storage.deletions.mark(uuid7())
await storage[Symbol.asyncDispose]()
process.stdout.write('disposed')
