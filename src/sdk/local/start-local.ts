/** Starts the server of a data directory in this process, for this user only. Loads the whole server. */
import type { StartOptions } from '../../app.ts'
import type { App } from '../../wiring/start-server.ts'
import { startApp } from '../../app.ts'
import { ensureWritable, readConfig } from '../../config/config.ts'
import { masterKeySource } from '../../config/environment.ts'
import { keepKey } from '../../config/kept-key.ts'
import type { ServerSettings } from '../../config/variables.ts'
import { endPreparation } from '../../process-settings.ts'

/** Resolves when it is ready. Returns undefined if another process, or another part of this one, holds the directory. */
export async function startLocal(
  dataDir: string,
  { settings, ...options }: StartOptions & { readonly settings?: ServerSettings },
): Promise<App | undefined> {
  await ensureWritable(dataDir, 'OPENHANDS_DATA_DIR')
  const key = masterKeySource() ? undefined : (await keepKey(dataDir)).key
  const config = readConfig({
    ...settings,
    OPENHANDS_DATA_DIR: dataDir,
    ...(key !== undefined && { OPENHANDS_MASTER_KEY: key }),
    // The output is that of the embedding program.
    OPENHANDS_LOG_LEVEL: 'CRITICAL',
    OPENHANDS_LOG_FORMAT: 'json',
  })
  const app = await startApp(config, { ...options, isLocal: true }).catch((error: unknown) => {
    if (error instanceof Error && error.name === 'DataDirectoryInUse') return undefined
    throw error
  })
  endPreparation()
  try {
    await app?.ready
    return app
  } catch (error) {
    await app?.close()
    throw error
  }
}
