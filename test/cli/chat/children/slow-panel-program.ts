/** A screen whose panel takes long to draw for the first time, for tests: until a key waits in the terminal, and some more. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createTheme } from '../../../../src/cli/chat/render/theme.ts'
import { QueuedMessages } from '../../../../src/cli/chat/input/queued-messages.ts'
import { Screen } from '../../../../src/cli/chat/screen.ts'
import { EMPTY_STATE } from '../../../../src/cli/chat/state/chat-state.ts'

/** Longer than a panel waits before it takes keys. */
const SLOW_MS = 500

const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
/** Nothing reads it while the panel is drawn. */
const isKeyWaiting = () =>
  spawnSync('bash', ['-c', 'read -t 0'], { stdio: ['inherit', 'ignore', 'inherit'] }).status === 0
const left = Promise.withResolvers<void>()
const handlers = {
  onSubmit: () => {},
  onEscape: () => {},
  onNextMode: () => {},
  onCancel: () => {},
  onEditor: () => {},
  onQueue: () => {},
  onUnqueue: () => false,
  onEnd: left.resolve,
}
const facts = () => ({ isSandboxed: true, server: undefined })
const screen = new Screen({
  theme: createTheme(false),
  facts,
  handlers,
  settings: {},
  queued: new QueuedMessages({ send: () => {}, restore: () => false }),
})
let [frames, key] = [0, 'none']

function render(): string[] {
  if (frames++ === 0) {
    writeFileSync('drawing', '')
    while (!isKeyWaiting()) block(10)
    block(SLOW_MS)
  }
  return [`answered by: ${key}`]
}

screen.start()
screen.show(EMPTY_STATE, {
  render: (_width, _rows, isReady) => [...render(), isReady ? 'ready' : 'not ready'],
  handleKey,
})
await left.promise
screen.stop()

function handleKey(pressed: string): boolean {
  if (pressed !== 'y') return false
  key = pressed
  return true
}
