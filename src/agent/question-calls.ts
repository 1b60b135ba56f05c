/** Finds the calls of a turn that ask the user something. */
import type { QuestionCall } from '../state/question-intents.ts'
import type { Tool } from '../tools/tool.ts'
import { readInput } from './tool-input.ts'

type OpenCall = { readonly toolUseId: string; readonly name: string; readonly input: unknown }

/** A call with invalid input asks nothing: it runs, and its result says what is wrong. */
export function questionCalls(
  tools: ReadonlyMap<string, Tool>,
  calls: readonly OpenCall[],
  denials: ReadonlyMap<string, string>,
): readonly QuestionCall[] {
  return calls.flatMap(({ toolUseId, name, input }) => {
    const tool = tools.get(name)
    if (!tool?.questions || denials.has(toolUseId)) return []
    const toolInput = readInput(tool, input)
    return 'fault' in toolInput ? [] : [{ toolUseId, questions: tool.questions(toolInput.accepted) }]
  })
}
