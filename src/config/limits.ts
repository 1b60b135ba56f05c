/** Reads the resource limits of commands. */
import { totalmem } from 'node:os'
import type { Name } from './variables.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import type { LimitValues } from '../shell/limit-values.ts'

import type { ReadVariable } from './environment.ts'
import { ConfigError } from './environment.ts'

/** The value that disables a limit. */
const UNLIMITED = 'none'
/** A shell does not start with less. */
const MIN_LIMITS = { bytes: 32 * 1024 ** 2, processes: 16, cpus: 0.05 }

export function readLimits(read: ReadVariable): LimitValues {
  return withoutUndefined({
    memoryBytes: readLimit('OPENHANDS_LIMIT_MEMORY', read, parseMemory, MIN_LIMITS.bytes),
    processes: readLimit('OPENHANDS_LIMIT_PROCESSES', read, parseCount, MIN_LIMITS.processes),
    cpus: readLimit('OPENHANDS_LIMIT_CPU', read, Number, MIN_LIMITS.cpus),
    diskBytes: readLimit('OPENHANDS_LIMIT_DISK', read, parseBytes, MIN_LIMITS.bytes),
  })
}

function readLimit(name: Name, read: ReadVariable, parse: (text: string) => number, least: number): number | undefined {
  const text = (read(name) ?? UNLIMITED).trim()
  if (text === UNLIMITED) return undefined
  const limit = parse(text)
  if (limit >= least && Number.isFinite(limit)) return limit
  throw new ConfigError(`${name} is not valid: give a number of at least ${least}, or none.`)
}

/** Percentages refer to the memory of the machine or the container. */
function parseMemory(text: string): number {
  const percent = /^(\d{1,2}|100)%$/.exec(text)?.[1]
  if (percent === undefined) return parseBytes(text)
  const constrainedBytes = process.constrainedMemory() || Infinity
  return Math.floor((Math.min(totalmem(), constrainedBytes) * Number(percent)) / 100)
}

function parseBytes(text: string): number {
  const [, digits, unit = ''] = /^(\d+)([KMGT]?)(?:i?B)?$/i.exec(text) ?? []
  const power = ['', 'K', 'M', 'G', 'T'].indexOf(unit.toUpperCase())
  return digits === undefined ? NaN : Number(digits) * 1024 ** power
}

const parseCount = (text: string) => (/^\d+$/.test(text) ? Number(text) : NaN)
