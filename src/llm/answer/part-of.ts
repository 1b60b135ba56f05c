/** Which pieces of an answer belong together. */
import type { LlmPiece } from '../llm.ts'

/**
 * Returns the part of the answer that a piece belongs to. Pieces of one part arrive in order; the order between parts
 * has no meaning.
 */
export function partOf(piece: LlmPiece): string {
  return piece.kind === 'tool_input' ? `${piece.kind} ${piece.index}` : piece.kind
}
