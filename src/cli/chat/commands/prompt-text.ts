/** Commands about texts: the last answer, the prompt, and the message of `/init`. */
import { savedText } from '../state/clean-text.ts'
import type { ChatContext } from './command.ts'

/** Terminals refuse longer sequences. */
const MAX_COPIED_BYTES = 74_000

/** Copies by a sequence of the terminal, which works over ssh, too. */
export function copyAnswer({ session, copy }: ChatContext): void {
  const last = session.state.items.findLast((item) => item.kind === 'answer' && !item.isReasoning && item.isComplete)
  if (last?.kind !== 'answer') throw new Error('There is no answer to copy yet.')
  // What is pasted into a shell must be what was shown.
  const text = savedText(last.parts.join('\n\n'))
  if (last.isCut || Buffer.byteLength(text) > MAX_COPIED_BYTES)
    throw new Error('The answer is too long for the clipboard of a terminal; /export writes it to a file.')
  copy(text)
  session.say('The last answer was sent to the clipboard, if the terminal allows that (OSC 52).')
}

const INIT = `Look at this project and write AGENTS.md in its root, or improve the one that is there: instructions for agents that work here.

- Read the README, the manifests, the configuration of the tools, and other instructions for agents (CLAUDE.md, .cursorrules, .github/copilot-instructions.md).
- Write down the commands to build, to lint, to run all tests and a single test, as they are in the project; run what is quick to see whether it works.
- Describe the structure that one sees only after reading several files, and conventions that the code follows everywhere.
- Leave out what is obvious, what every project has, and lists of all files. At most 100 lines.`

export const init = async ({ send }: ChatContext): Promise<void> => await send(INIT)
