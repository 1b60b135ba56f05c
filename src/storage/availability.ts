import type { Lease } from './lease/lease.ts'

/** Whether a storage can be used now, and by this server. */
export type Availability = {
  /**
   * Aborted when another server has taken over the storage. From then on nothing is read or stored, with the `Problem`
   * `storage_unavailable`, and this server must stop. The reason is an error that says why.
   */
  readonly takenOver: AbortSignal
  /**
   * Returns false while a server that the storage needs has not answered for so long that requests are refused, or that the
   * lease is not held.
   */
  readonly answers: () => boolean
  /** Undefined where no other instance can take over while this one runs. */
  readonly lease?: Lease | undefined
}
