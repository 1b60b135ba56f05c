/** A server for the crash test: works with a file storage until it is killed. */
import { openFileStorage } from '../../../../src/storage/files/file-storage.ts'
import { work } from '../../workload.ts'

const storage = await openFileStorage({
  directory: process.argv[2]!,
  operatorKeys: ['key of the operator'],
  onFault: (error) => console.error(error),
})
await work(storage)
