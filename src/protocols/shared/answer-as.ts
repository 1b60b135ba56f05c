/** The only way of the protocols to answer what waits: with the rights of the key. */
import type { Access } from '../../access/access.ts'
import { REQUESTS } from '../../contract/requests/request-kinds.ts'
import type { AnswerRequest } from '../../contract/request.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { limitAs } from '../../http/guards/profile-limits.ts'

export type GivenAnswer = { readonly requestId: string; readonly answer: AnswerRequest }

/** Throws `forbidden`, as the route does that answers one of them. */
export function mayAnswer(access: Access, answers: readonly GivenAnswer[]): void {
  access.require(...answers.map(({ answer }) => REQUESTS[answer.kind].scope))
  for (const { answer } of answers) limitAs(access, 'POST /conversations/:id/requests/:request_id', answer)
}

/** If the key may not give one of them, none is given. */
export async function answerAs(
  { requests }: Conversation,
  access: Access,
  answers: readonly GivenAnswer[],
): Promise<void> {
  mayAnswer(access, answers)
  for (const { requestId, answer } of answers) await requests.answer(requestId, answer, access.key?.name)
}
