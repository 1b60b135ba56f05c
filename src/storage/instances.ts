/** The instances that share a storage, and which of them has a conversation. */
import type { Summary } from './summary.ts'

/** An instance that other instances of the same storage can reach. */
export type Peer = { readonly instance: number; readonly address: string }

export type AnnouncedPeer = Peer & { readonly settings: Readonly<Record<string, string>> }

/** The runs of an instance that have a slot, and how many slots it has. */
export type RunLoad = { readonly active: number; readonly limit: number }

export interface Instances {
  /** The number of this one, which no other start has. */
  readonly own: number
  /** Stores the address at which the others reach this one, and hashes of its settings by name. */
  announce(address: string, settings: Readonly<Record<string, string>>): Promise<void>
  /** Resolves to the other instances that live and have announced themselves. */
  others(): Promise<AnnouncedPeer[]>
  /** Resolves to the other instance that owns the conversation, if it lives and has announced an address. */
  otherOwnerOf(conversationId: string): Promise<Peer | undefined>
  /** Resolves to the instance that executes the create with this idempotency key, or has what it has made. */
  ownerOfKey(key: string): Promise<Peer | undefined>
  /** Resolves to those of these instances that have ended: none of them answers any more. */
  ended(instances: readonly number[]): Promise<number[]>
  /**
   * Ends the incarnation of the former start, without the wait for its TTL, if its process is certainly dead. Call it when
   * nothing runs any more that it has left.
   */
  endFormer(): Promise<void>
  /** Stores that this one stops: `successor` does not return it any more. */
  leave(): Promise<void>
  /** Stores with each renewal of the lease what this returns. */
  publishLoad(load: () => RunLoad): void
  /** Resolves to the least loaded other instance, if it can take conversations over now. */
  successor(): Promise<Peer | undefined>
  /** Resolves to the least loaded other instance that has a free slot, if no instance that lives owns the conversation. */
  leastLoadedFor(conversationId: string): Promise<Peer | undefined>
  /** Resolves to at most `limit` other conversations with unfinished work whose owner has ended, or has left them. */
  orphans(limit: number, except: readonly string[]): Promise<string[]>
  /** Resolves to true if the conversation is one of these. */
  isOrphan(conversationId: string): Promise<boolean>
}

/** What lists show of a conversation after its last event. */
export type ListedConversation = {
  readonly id: string
  readonly lastSeq: number
  /** Unix time in milliseconds. */
  readonly updatedAt: number
  /** Undefined if it must be read from the log. Fields without a value may be missing. */
  readonly summary?: Summary
  /** An earlier one. */
  readonly former?: Summary
}

export type Changes = {
  /** The position for the next call. */
  readonly position: number
  readonly changed: readonly ListedConversation[]
  /** The ids of deleted conversations. */
  readonly deleted: readonly string[]
}

/** `id` and `at`: the conversation of the request, and when it came, RFC 3339. */
export type ClaimedKey = {
  readonly key: string
  readonly bodyHash: string
  readonly id: string
  readonly at: string
  /** Its conversation exists, or was deleted. */
  readonly isMade: boolean
  /** Another instance that lives has its conversation. */
  readonly isElsewhere: boolean
}

/** The idempotency keys of creates at all instances. */
export interface KeyClaims {
  /** Call it before the conversation `id` is created. Resolves to the earlier request with this key, if there is one. */
  claimKey(claim: {
    readonly key: string
    readonly bodyHash: string
    readonly id: string
  }): Promise<ClaimedKey | undefined>
  /** Call it if the conversation was not created. */
  releaseKey(claim: { readonly key: string; readonly id: string }): Promise<void>
  /** Call it if the conversation was created and deleted, and the next request with the key creates another one. */
  freeKey(claim: { readonly key: string; readonly id: string }): Promise<void>
}

/** `text` is the whole replay; `forks`: the ids of the conversations that it has or will have. */
export type StoredReplay = { readonly id: string; readonly forks: readonly string[]; readonly text: string }

/** The replays of all instances, and which of them has each. */
export interface ReplayTable {
  /**
   * Stores a new replay of this instance; durable. Stores nothing and resolves to the text of an earlier replay if one of the
   * last day has this idempotency key.
   */
  create(replay: StoredReplay & { readonly key: string | undefined }): Promise<string | undefined>
  /** Replaces it; durable. Throws the `Problem` `storage_unavailable` if this instance does not have it. */
  write(replay: StoredReplay): Promise<void>
  /** Its idempotency key is free then. */
  remove(id: string): Promise<void>
  /** Resolves to the text; that of a key for a day. */
  read(replay: { readonly id: string } | { readonly key: string }): Promise<string | undefined>
  /** Resolves to replays without the rows of their tables, newest first; to none if there are no more. */
  page(before: string | undefined): Promise<Pick<StoredReplay, 'id' | 'text'>[]>
  /** Resolves to the ids of the replays of instances that have ended. */
  orphans(): Promise<string[]>
  /** Makes those of them that are still orphans replays of this instance. Resolves to the texts of all of them that it has. */
  adopt(ids: readonly string[]): Promise<string[]>
  /** Resolves to the other instance that has it, if that one lives. */
  otherOwnerOf(id: string): Promise<Peer | undefined>
  /** Resolves to the ids of the forks of all replays. */
  forks(): Promise<string[]>
}

/** The stream tickets of all instances. */
export interface TicketTable {
  /** Stores a ticket. Removes the oldest unused ones of the holder, so that it has at most so many. */
  add(
    ticket: { readonly hash: string; readonly holder: string; readonly value: string },
    limits: { readonly lifetimeMs: number; readonly mostOfHolder: number },
  ): Promise<void>
  /** Resolves to the value of a ticket that has not expired, for one caller; to undefined for all others. */
  take(hash: string): Promise<string | undefined>
}

/** The conversations of all instances that share a storage. Nothing here takes one over. */
export interface SharedConversations extends KeyClaims {
  /** Resolves to a position that is before all later changes. */
  position(): Promise<number>
  /** Resolves to what other instances have changed after this position: all that was stored before the call, some of it again. */
  changes(after: number): Promise<Changes>
  /** Resolves to undefined if there is no such conversation, or it was deleted. */
  listed(id: string): Promise<ListedConversation | undefined>
  /** Yields all conversations but the deleted ones, in parts, about in the order of their creation. */
  all(): AsyncIterable<readonly ListedConversation[]>
  /** Resolves to what interrupted creates and deletions have left, as far as no instance that lives works on it. */
  remains(): Promise<{ readonly created: readonly string[]; readonly deleted: readonly string[] }>
}
