/**
 * Takes the process out of the current directory: the server reads a `.env` there, and in a directory that somebody else
 * wrote it could turn off the sandbox, or send the key of the model elsewhere.
 */
import { resolve } from 'node:path'
import { leaveDirectory } from '../lib/start-process.ts'
import { ensureWritable } from './config.ts'
import { readSecretPipes } from './environment.ts'
import { defaultDataDir } from './paths.ts'

/** Variables whose paths may be relative to the current directory. */
const RELATIVE = /^(OPENHANDS_DATA_DIR|OPENHANDS_WORKDIR_BASE|(OPENHANDS|LLM|TAVILY)_\w+_FILE)$/

type Leaving = {
  /** False for a remote server. */
  readonly createsIt: boolean
  readonly signal: AbortSignal
}

/** Returns the data directory. Resolve all other relative paths before. Secrets that come from pipes are read then. */
export async function leaveProject({ createsIt, signal }: Leaving): Promise<string> {
  for (const [name, path] of Object.entries(process.env))
    if (path && RELATIVE.test(name)) process.env[name] = resolve(path)
  const dataDir = process.env.OPENHANDS_DATA_DIR || defaultDataDir()
  if (createsIt) await ensureWritable(dataDir, 'OPENHANDS_DATA_DIR')
  leaveDirectory(createsIt ? dataDir : '/')
  // A remote server gets no other secret.
  await readSecretPipes(createsIt ? undefined : ['OPENHANDS_MASTER_KEY'], signal)
  return dataDir
}
