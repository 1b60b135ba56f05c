/** What the database says of instances, for tests of connections without one. */
import type { Instances } from '../../src/storage/instances.ts'

/** The instance of this number, with nothing to say of others. */
export const loneInstance = (own: number): Instances => ({
  own,
  announce: async () => {},
  otherOwnerOf: async () => undefined,
  otherOwnerOfKey: async () => undefined,
  others: async () => [],
  ended: async () => [],
  endFormer: async () => {},
  leave: async () => {},
  successor: async () => undefined,
  orphans: async () => [],
  isOrphan: async () => false,
})
