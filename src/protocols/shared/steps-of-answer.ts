import type { Conversation } from '../../conversations/conversation.ts'
import type { TurnStep } from '../items/follow-turn.ts'
import { followTurn, readTurn } from '../items/follow-turn.ts'
import { isAtRest } from './is-at-rest.ts'

/**
 * Follows a turn. One that `isNew` ends where it rests. An earlier one is followed past where it rested before, because somebody has
 * answered; where it rests now, it is read as far as it is stored.
 */
export function stepsOfAnswer(
  conversation: Conversation,
  start: number,
  signal: AbortSignal,
  isNew: boolean,
): AsyncGenerator<TurnStep, void, void> {
  const { log } = conversation
  if (isNew) return followTurn(log, start, signal)
  return isAtRest(conversation) ? readTurn(log, start, Infinity) : followTurn(log, start, signal, log.head)
}
