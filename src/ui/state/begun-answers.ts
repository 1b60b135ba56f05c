/** Answers to questions that a person has begun to give: they stay while other screens are shown, until the request has ended. */
import { signal } from '@preact/signals'
import { onRequestEnd } from './live.ts'

/** The answers to each question of a request, by its place. */
export type ChosenLabels = Readonly<Record<number, readonly string[]>>

const begunAnswers = signal<ReadonlyMap<string, ChosenLabels>>(new Map())

export const begunAnswer = (requestId: string): ChosenLabels => begunAnswers.value.get(requestId) ?? {}

export function keepAnswer(requestId: string, chosenLabels: ChosenLabels): void {
  begunAnswers.value = new Map([...begunAnswers.value, [requestId, chosenLabels]])
}

onRequestEnd(({ request_id }) => {
  begunAnswers.value = new Map([...begunAnswers.value].filter(([id]) => id !== request_id))
})
