/** What a client says of the events that it knows when it changes something. */
import { z } from 'zod'

export const KnownSeq = z
  .int()
  .nonnegative()
  .optional()
  .describe(
    'Seq of the last event that the client knows. If the conversation was rewound after it, the request is refused: 409 `conversation_changed`.',
  )
