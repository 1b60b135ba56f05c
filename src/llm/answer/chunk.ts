/** What one message of a model's stream adds to the answer, whatever the API it came through. */
import type { Phase, ProviderData, Usage } from '../../contract/values/message.ts'
import type { Fields } from './fields.ts'
import type { CallFragment } from './tool-call-assembly.ts'

export type Chunk = {
  readonly text: string
  readonly reasoning: string
  readonly calls: readonly CallFragment[]
  /**
   * Whether the text is a piece of the answer, the answer so far (a `message` with an empty `delta`), or the whole text
   * of the chunk (a `message` alone).
   */
  readonly extent: 'piece' | 'so_far' | 'message'
  /** '' while the model continues. */
  readonly finishReason: string
  readonly usage: Usage | undefined
  /** What the provider says that the answer costs. */
  readonly costUsd?: number | undefined
  readonly model: string
  /** The provider failed during the stream; its error object. */
  readonly error: unknown
  /** True if an answer begins with this. A gateway that tries again may send another beginning in the same stream. */
  readonly isStart?: boolean
  /** True if this is a chunk of an answer at all. */
  readonly isAnswer: boolean
  /** True for the usage chunk after the last choice, as `include_usage` requests it. */
  readonly isLast: boolean
  /** True if nothing follows: the answer is not read any further. */
  readonly isEnd?: boolean
  /** The block that the text or the reasoning belongs to, for APIs whose answers consist of blocks. */
  readonly block?: string
  /** What has to be sent back with the block, unchanged. */
  readonly proof?: ProviderData
  /** What describes the reasoning as a whole, in pieces. */
  readonly details?: readonly Fields[]
  /** What the text is for. */
  readonly phase?: Phase
}

/** Reads the messages of one answer, in order. Never throws. */
export type ChunkReader = (json: unknown) => readonly Chunk[]

/** A chunk that adds nothing. */
export const NOTHING: Chunk = {
  text: '',
  reasoning: '',
  calls: [],
  extent: 'piece',
  finishReason: '',
  usage: undefined,
  model: '',
  error: undefined,
  isAnswer: true,
  isLast: false,
}
