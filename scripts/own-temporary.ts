/** A directory for the temporary files of a script and of what it starts. Both end with the script. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endWithThisProcess } from '../test/support/left-processes.ts'

/** Call it first. */
export function useOwnTemporary(): void {
  // Short, because the path of a Unix socket has at most 103 bytes.
  const directory = mkdtempSync(join(tmpdir(), 'as-'))
  process.env['TMPDIR'] = directory
  endWithThisProcess(directory)
}
