/**
 * The text and the reasoning of an answer as a list of parts, in the order of the model: an API that wants its
 * reasoning back unchanged also wants it in its place.
 */
import type { AssistantPart, Phase, ProviderData } from '../../contract/values/message.ts'
import { isToReturn } from '../../contract/values/message.ts'
import { AnswerTooLarge } from './answer-limits.ts'

/** An empty block costs an endless stream nothing, and the server memory. */
const MAX_BLOCKS = 2000

type BlockPiece = {
  readonly block: string
  readonly text: string
  readonly reasoning: string
  readonly proof: ProviderData | undefined
  readonly phase: Phase | undefined
  readonly callsBefore: number
}

type Block = {
  readonly kind: 'text' | 'reasoning'
  readonly callsBefore: number
  readonly phase: Phase | undefined
  text: string
  proof: ProviderData | undefined
}

export class AnswerParts {
  readonly #blocks = new Map<string, Block>()

  /** Returns true if the piece begins a block of reasoning that has text. Throws `AnswerTooLarge`. */
  add({ block, text, reasoning, proof, phase, callsBefore }: BlockPiece): boolean {
    if (text === '' && reasoning === '' && !proof) return false
    // One block has one kind, whatever a server claims.
    const kind = text === '' ? 'reasoning' : 'text'
    const name = `${kind} ${block}`
    const knownBlock = this.#blocks.get(name)
    if (!knownBlock && this.#blocks.size === MAX_BLOCKS)
      throw new AnswerTooLarge(`it has more than ${MAX_BLOCKS} blocks`)
    const part = knownBlock ?? { kind, callsBefore, phase, text: '', proof: undefined }
    this.#blocks.set(name, part)
    const begins = kind === 'reasoning' && part.text === '' && reasoning !== ''
    part.text += kind === 'text' ? text : reasoning
    part.proof = proof ?? part.proof
    return begins
  }

  /** Returns undefined if no part has to be sent back unchanged, and the reasoning comes first. */
  finish(): readonly AssistantPart[] | undefined {
    const parts = [...this.#blocks.values()].flatMap(partsOfBlock)
    const firstText = parts.findIndex(({ type }) => type === 'text')
    const hasLateReasoning = firstText >= 0 && parts.slice(firstText).some(({ type }) => type === 'reasoning')
    return hasLateReasoning || parts.some(isToReturn) ? parts : undefined
  }
}

function partsOfBlock({ kind, text, proof, phase, callsBefore }: Block): AssistantPart[] {
  const wellFormed = text.toWellFormed()
  if (kind === 'text')
    return wellFormed.trim() === '' ? [] : [{ type: 'text', text: wellFormed, ...(phase && { phase }) }]
  // A changed text no longer fits its signature.
  const data = wellFormed === text ? proof : undefined
  if (wellFormed === '' && !data) return []
  return [
    {
      type: 'reasoning',
      text: wellFormed,
      ...(callsBefore > 0 && { calls_before: callsBefore }),
      ...(data && { provider_data: data }),
    },
  ]
}

type SaidText = { readonly text: string; readonly reasoning: string }

/**
 * Makes parts for an API whose answers have no blocks: what has to be sent back of the reasoning is with it, and what
 * belongs to the calls comes last. Returns undefined if there is nothing.
 */
export function partsWithExtras(
  { text, reasoning }: SaidText,
  { extras, details }: { readonly extras: readonly (string | undefined)[]; readonly details: string | undefined },
): readonly AssistantPart[] | undefined {
  if (details === undefined && extras.every((extra) => extra === undefined)) return undefined
  const about = details && { provider: 'openai' as const, kind: 'reasoning_details' as const, data: details }
  return [
    ...(reasoning || about
      ? [{ type: 'reasoning' as const, text: reasoning, ...(about && { provider_data: about }) }]
      : []),
    ...(text.trim() ? [{ type: 'text' as const, text }] : []),
    ...extras.flatMap((data, at): AssistantPart[] => {
      if (data === undefined) return []
      const provider_data = { provider: 'openai', kind: 'tool_call', data } as const
      return [{ type: 'reasoning', text: '', ...(at > 0 && { calls_before: at }), provider_data }]
    }),
  ]
}
