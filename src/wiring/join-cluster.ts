/** Opens this instance to the others of its database. What that needs is loaded only with the setting. */
import type { Server } from 'node:http'
import type { Cluster } from '../cluster/cluster.ts'
import type { TlsFiles, TlsMaterial } from '../cluster/tls.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import type { ConversationManager } from '../conversations/manager.ts'
import type { RemoteConversations } from '../http/remote/remote-conversations.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Services } from './services.ts'

export async function openCluster(
  config: Config,
  { storage, logger, metrics, slots }: Services,
  { isHere }: Pick<ConversationManager, 'isHere'>,
): Promise<Cluster | undefined> {
  const { instances, keys, replays } = storage
  if (!config.cluster || !instances) return undefined
  const module = await import('../cluster/cluster.ts')
  const onRefused = (error: unknown) => logger.warn({ err: error }, 'a connection of another instance was refused')
  const onFault = (error: unknown) => logger.error({ err: error }, 'another instance could not be reached with TLS')
  const tls = config.cluster.tls && (await readCertificates(config.cluster.tls))
  const onForwarded = metrics.cluster?.forwarded
  const { maxConcurrentRuns: limit, sharedDir } = config
  instances.publishLoad(() => ({ active: slots.active, limit }))
  // Elsewhere, its files would be missing.
  const leavesToOthers = () => sharedDir !== undefined && slots.active >= limit
  const parts = { isHere, onRefused, onFault, onForwarded }
  return new module.Cluster({ instances, replays, keyMaterial: keys.material[0], tls, leavesToOthers, ...parts })
}

async function readCertificates(files: TlsFiles): Promise<TlsMaterial> {
  const { readTls } = await import('../cluster/tls.ts')
  return await readTls(files).catch((cause: unknown) => {
    throw new ConfigError(cause instanceof Error ? cause.message : String(cause), { cause })
  })
}

/** Dispose of it before the cluster: the streams then end with a last frame. */
export async function openRemote(
  cluster: Cluster | undefined,
  { storage, logger }: Services,
  manager: ConversationManager,
): Promise<RemoteConversations | undefined> {
  const { instances } = storage
  if (!cluster || !instances) return undefined
  const module = await import('../http/remote/remote-conversations.ts')
  return new module.RemoteConversations({ cluster, instances, views: storage, manager, logger })
}

/** Throws a `ConfigError` if the other instances would not reach this one. */
export async function listenInCluster(cluster: Cluster, http: Server, config: Config, logger: Logger): Promise<void> {
  if (!config.cluster) return
  try {
    // Its default is in the data directory.
    const settings = { ...config.cluster.settings, OPENHANDS_WORKDIR_BASE: config.workdirBase }
    const address = await cluster.listen(http, { ...config.cluster, settings })
    logger.info(`Other instances reach this one at ${address}`)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    const { tlsFaultIn } = await import('../cluster/tls.ts')
    const fault = tlsFaultIn(cause)
    if (fault !== undefined)
      throw new ConfigError(
        `This instance does not accept its own certificate: ${fault} Correct OPENHANDS_CLUSTER_TLS_CERT or OPENHANDS_CLUSTER_TLS_CA.`,
        { cause },
      )
    throw new ConfigError(
      `OPENHANDS_CLUSTER_LISTEN or OPENHANDS_ADVERTISE_URL does not lead back to this instance: ${reason} Correct the address.`,
      { cause },
    )
  }
  await warnOfDifferences(cluster, logger).catch((error: unknown) =>
    logger.error({ err: error }, 'the settings of the other instances could not be compared'),
  )
}

async function warnOfDifferences(cluster: Cluster, logger: Logger): Promise<void> {
  for (const { address, names } of await cluster.differences())
    logger.warn(
      { settings: names },
      `the instance at ${address} has other values of these settings; give both the same ones`,
    )
}
