/** Instances in tests: their environment, and what a database says of one that is alone. */
import type { Instances } from '../../src/storage/instances.ts'
import type { TestDatabase } from './postgres.ts'

/** The instance of this number, with nothing to say of others. */
export const loneInstance = (own: number): Instances => ({
  own,
  announce: async () => {},
  otherOwnerOf: async () => undefined,
  ownerOfKey: async () => undefined,
  others: async () => [],
  ended: async () => [],
  endFormer: async () => {},
  leave: async () => {},
  publishLoad: () => {},
  successor: async () => undefined,
  leastLoadedFor: async () => undefined,
  orphans: async () => [],
  isOrphan: async () => false,
})

/** The environment of one of several instances on this database. */
export const instanceOn = ({ url }: Pick<TestDatabase, 'url'>) => ({
  OPENHANDS_DATABASE_URL: url,
  OPENHANDS_CLUSTER_LISTEN: '127.0.0.1:0',
  OPENHANDS_ISOLATION: 'none',
})
