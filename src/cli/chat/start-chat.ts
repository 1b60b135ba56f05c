/** Starts the interactive chat, and gives the terminal back however it ends. */
import type { StartChat } from '../chat-seam.ts'
import { onEndSignals, SIGNAL_CODES } from '../terminal/end-signals.ts'
import { Chat } from './chat.ts'

export const startChat: StartChat = async (options) => {
  const chat = new Chat(options)
  using cleanup = new DisposableStack()
  listen(cleanup, 'exit', () => void chat.close())
  cleanup.use(onEndSignals((code) => chat.onSignal(code)))
  // A terminal that is gone, where no signal says so.
  const hangUp = () => chat.leave(SIGNAL_CODES.SIGHUP)
  process.stdin.once('end', hangUp).on('error', hangUp)
  process.stdout.on('error', hangUp)
  listen(cleanup, 'uncaughtException', (error) => chat.fail(error))
  try {
    const exitCode = await chat.run()
    await chat.close(true)
    return exitCode
  } finally {
    void chat.close()
  }
}

function listen(cleanup: DisposableStack, name: string, listener: (...args: unknown[]) => void): void {
  process.on(name, listener)
  cleanup.defer(() => process.off(name, listener))
}
