/**
 * The limits of a server: the maximum for conversations, the means by which they are enforced here, and an object for
 * each conversation.
 */
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import type { RequestedLimits, ResourceLimits } from '../contract/limits/resource-limits.ts'
import { Problem } from '../contract/problem.ts'
import { ownOpenFiles, ownProcesses } from './own-limits.ts'
import { createCgroupFactory } from './cgroup-factory.ts'
import type { ConversationLimitsOptions, LimitMeans } from './conversation-limits.ts'
import { ConversationLimits } from './conversation-limits.ts'
import type { Programs } from './disk-usage.ts'
import { LimitWatch } from './limit-watch.ts'
import type { LimitValues } from '../shell/limit-values.ts'
import { limitsAbove, lowerLimits } from '../shell/limit-values.ts'

/** Maximum open files of a process, whatever the server's own limit. */
const MAX_OPEN_FILES = 65_536
/** A shell does not start with less. */
const MIN_PROCESSES = 16
/** The directories replace the shells' search path, which may begin with a directory that agents can write to. */
const SYSTEM_DIRECTORIES = ['/usr/local/bin', '/usr/bin', '/bin', '/run/current-system/sw/bin']

export interface ResourceLimiter {
  /** The conversations whose control groups still had processes of an earlier server; they were killed at startup. */
  readonly ended: readonly string[]
  /** Throws a `Problem` if more is requested than the server allows. */
  check(requested: RequestedLimits): void
  /** Returns the effective limits of a conversation with this request, and how they are enforced. */
  inForce(requested?: RequestedLimits): ResourceLimits
  limit(options: LimitedConversation): ConversationLimits
}

export type LimitedConversation = Pick<ConversationLimitsOptions, 'conversationId' | 'stateDir' | 'roots'> & {
  readonly requested: RequestedLimits | undefined
}

export type ResourceLimiterOptions = {
  /** Maximum for each conversation. */
  readonly limits: LimitValues
  /** Locked by this server. */
  readonly dataDir: string
  readonly onError: (error: unknown) => void
}

/** Detects what can be limited on this host, and how; removes what a killed server has left. */
export async function createResourceLimiter({
  limits: askedLimits,
  dataDir,
  onError,
}: ResourceLimiterOptions): Promise<ResourceLimiter> {
  const ownLimit = ownProcesses()
  const limits = leavingProcesses(askedLimits, ownLimit)
  const means: LimitMeans = {
    factory: await createCgroupFactory(dataDir),
    watch: new LimitWatch(onError),
    programs: findPrograms(),
    nice: findSystemProgram('nice'),
    ownProcesses: ownLimit,
    maxOpenFiles: Math.min(MAX_OPEN_FILES, ownOpenFiles() ?? MAX_OPEN_FILES),
  }
  return {
    ended: means.factory.ended,
    check(requestedLimits) {
      const above = limitsAbove(limits, requestedLimits)
      if (above.length === 0) return
      throw new Problem('invalid_request', `limits: more than this server allows: ${above.join(', ')}.`)
    },
    inForce: (requestedLimits) => describe(lowerLimits(limits, requestedLimits), means),
    limit: ({ requested, ...options }) =>
      new ConversationLimits({ ...means, ...options, limits: lowerLimits(limits, requested) }),
  }
}

/** One conversation gets at most half of the processes that the server may have, so that the others can work. */
function leavingProcesses(limits: LimitValues, own: number | undefined): LimitValues {
  if (own === undefined || limits.processes === undefined) return limits
  return { ...limits, processes: Math.min(limits.processes, Math.max(MIN_PROCESSES, Math.floor(own / 2))) }
}

function describe({ memoryBytes, processes, cpus, diskBytes }: LimitValues, means: LimitMeans): ResourceLimits {
  const { factory, programs } = means
  const boundedBy = (limit: number | undefined, controller: 'memory' | 'pids') => {
    if (limit === undefined) return 'none'
    const by = factory.enforcedBy(controller)
    return by === 'none' ? 'watchdog' : by
  }
  const cpu = factory.enforcedBy('cpu')
  return {
    memory_bytes: memoryBytes ?? null,
    processes: processes ?? null,
    cpus: cpus ?? null,
    disk_bytes: diskBytes ?? null,
    enforced_by: {
      memory: boundedBy(memoryBytes, 'memory'),
      processes: boundedBy(processes, 'pids'),
      cpu: cpu === 'none' ? 'priority' : cpu,
      io: factory.enforcedBy('io'),
      disk: diskBytes !== undefined && programs ? 'accounting' : 'none',
    },
  }
}

function findPrograms(): Programs | undefined {
  const [du, find] = [findSystemProgram('du'), findSystemProgram('find')]
  return du === undefined || find === undefined ? undefined : { du, find }
}

function findSystemProgram(name: string): string | undefined {
  return SYSTEM_DIRECTORIES.map((directory) => join(directory, name)).find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
