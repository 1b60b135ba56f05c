/** How much clients may still store: the limit of one body, and the disk quota of the conversation. */
import { Problem } from '../../contract/problem.ts'
import type { DiskQuota } from '../../limits/disk-quota.ts'

/** Returns a function that counts received bytes and throws if there are too many. */
export function limitOf(maxBytes: number, room: Room): (bytes: number) => void {
  let takenBytes = 0
  return (bytes) => {
    takenBytes += bytes
    if (takenBytes > maxBytes) throw tooLarge()
    if (takenBytes > room.bytes) throw noRoomIn(room.quota)
  }
}

/** The bytes that are free: a full disk takes not even an empty file. */
export type Room = { readonly bytes: number; readonly quota: DiskQuota | undefined }

export async function roomIn(quota: DiskQuota | undefined): Promise<Room> {
  const bytes = quota ? await quota.room() : Infinity
  if (bytes === 0) throw noRoomIn(quota)
  return { bytes, quota }
}

function noRoomIn(quota: DiskQuota | undefined): Problem {
  const details = { used_bytes: quota?.usedBytes ?? 0, limit_bytes: quota?.limitBytes ?? 0 }
  const message = `${quota?.tell({ withNames: false }) ?? ''} Nothing was stored; delete files first.`
  return new Problem('disk_quota_exceeded', message, { details })
}

export const tooLarge = () =>
  new Problem('body_too_large', 'The body is larger than OPENHANDS_MAX_UPLOAD_BYTES allows; nothing was stored.')
