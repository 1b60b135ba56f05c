/** Starts the interactive chat, and gives the terminal back however it ends. */
import { constants } from 'node:os'
import type { StartChat } from '../chat-seam.ts'
import { Chat } from './chat.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** What shells add to the number of a signal. */
const SIGNAL_EXIT_CODE = 128

export const startChat: StartChat = async (options) => {
  const chat = new Chat(options)
  using cleanup = new DisposableStack()
  listen(cleanup, 'exit', () => chat.close())
  for (const name of SIGNALS) listen(cleanup, name, () => chat.leave(SIGNAL_EXIT_CODE + constants.signals[name]))
  // A terminal that is gone, where no signal says so.
  const hangUp = () => chat.leave(SIGNAL_EXIT_CODE + constants.signals.SIGHUP)
  process.stdin.once('end', hangUp).on('error', hangUp)
  process.stdout.on('error', hangUp)
  listen(cleanup, 'uncaughtException', (error) => chat.fail(error))
  try {
    const exitCode = await chat.run()
    chat.close(true)
    return exitCode
  } finally {
    chat.close()
  }
}

function listen(cleanup: DisposableStack, name: string, listener: (...args: unknown[]) => void): void {
  process.on(name, listener)
  cleanup.defer(() => process.off(name, listener))
}
