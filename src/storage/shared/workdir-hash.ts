/** How a shared workdir is named in tables: by a hash of its real path, in hexadecimal. */
import { createHash } from 'node:crypto'

export const hashOfWorkdir = (workdir: string): string => createHash('sha256').update(workdir).digest('hex')
