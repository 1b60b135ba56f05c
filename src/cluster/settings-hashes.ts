/** Compares the settings of instances without showing a value: only hashes that need the key of the cluster are stored. */
import { createHmac } from 'node:crypto'

/** Enough that two values are never taken for one by chance. */
const HASH_CHARS = 22

export type SettingsHashes = Readonly<Record<string, string>>

export function hashSettings(settings: Readonly<Record<string, string>>, key: Buffer): SettingsHashes {
  const hashOf = (name: string, value: string) =>
    createHmac('sha256', key).update(`setting ${name} ${value}`).digest('base64url').slice(0, HASH_CHARS)
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, hashOf(name, value)]))
}

/** Returns the names of the settings that differ, sorted. */
export const differingSettings = (one: SettingsHashes, other: SettingsHashes): string[] =>
  [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((name) => one[name] !== other[name]).sort()
