/** Asks the person at a terminal about tool calls and questions, one at a time. */
import { createInterface } from 'node:readline/promises'
import { Queue } from '../../lib/queue.ts'
import { invalid } from '../errors/invalid.ts'
import type { AnswerQuestions, CanUseTool, Terminal } from '../options/query-options.ts'

/** Characters of an input that are shown. */
const MAX_SHOWN_CHARS = 2000

export type TerminalApprover = { readonly canUseTool: CanUseTool; readonly answerQuestions: AnswerQuestions }

/** Throws if this process has no terminal, and none is given. */
export function createTerminalApprover(option: true | Terminal): TerminalApprover {
  const terminal = option === true ? terminalOfProcess() : option
  // One reader of the terminal at a time.
  const queue = new Queue({ limit: 1 })
  const ask = (question: string, signal: AbortSignal) =>
    queue.run(() => readAnswer(terminal, question, signal), { signal })
  return {
    async canUseTool(name, input, { signal, reason, rules }) {
      const always = rules?.length ? `/a (always: ${visible(rules.join(', '))})` : ''
      const shownInput = visible(typeof input === 'string' ? input : JSON.stringify(input, undefined, 2))
      const answer = await ask(`\n${visible(name)} ${shownInput}\n${visible(reason)}\nAllow? y/n${always} `, signal)
      if (answer === undefined) return { behavior: 'deny', message: 'Nobody was at the terminal.' }
      const reply = answer.trim().toLowerCase()
      if (always !== '' && (reply === 'a' || reply === 'always')) return { behavior: 'allow', remember: true }
      if (reply === 'y' || reply === 'yes') return { behavior: 'allow' }
      const isPlainNo = reply === '' || reply === 'n' || reply === 'no'
      return { behavior: 'deny', ...(!isPlainNo && { message: `The user said: ${answer.trim()}` }) }
    },
    async answerQuestions(questions, { signal }) {
      const answers: Record<string, string[]> = {}
      for (const { question, options, multi_select } of questions) {
        const list = options.map(
          ({ label, description }, at) => `  ${at + 1}. ${visible(label)}: ${visible(description)}`,
        )
        const how = multi_select ? 'Numbers, separated by commas, or your own words:' : 'A number, or your own words:'
        const answer = await ask(`\n${visible(question)}\n${list.join('\n')}\n${how} `, signal)
        if (answer === undefined) return undefined
        const chosenLabels = multi_select ? answer.split(',') : [answer]
        const labels = chosenLabels.map((each) => options[Number(each) - 1]?.label ?? each.trim()).filter(Boolean)
        if (labels.length > 0) answers[question] = labels
      }
      return Object.keys(answers).length > 0 ? answers : undefined
    },
  }
}

function terminalOfProcess(): Terminal {
  const { stdin: input, stderr: output } = process
  if (input.isTTY && output.isTTY) return { input, output }
  throw invalid('interactiveApprover needs a terminal, and this process has none. Use canUseTool, or permissionMode.')
}

/** Undefined at the end of the input. Leaves the terminal to others between the questions. */
async function readAnswer(
  { input, output }: Terminal,
  question: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const reader = createInterface({ input, output })
  const { promise: closing, resolve } = Promise.withResolvers<undefined>()
  reader.once('close', () => resolve(undefined))
  try {
    return await Promise.race([reader.question(question, { signal }), closing])
  } finally {
    reader.close()
  }
}

/** Text of a model must not move the cursor, or hide what it says. */
function visible(text: string): string {
  const plain = text.replaceAll(/(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\ufffd')
  return plain.length > MAX_SHOWN_CHARS ? `${plain.slice(0, MAX_SHOWN_CHARS)}… (${plain.length} characters)` : plain
}
