/** The output of a call while it runs, redacted. */
import type { Redactor } from '../security/redaction/redactor.ts'

export type LiveOutputDeps = {
  /** Redacts all output of tools, complete or streamed, before anything else reads it. */
  readonly redactor: Pick<Redactor, 'redact' | 'stream'>
  readonly onOutput: (toolUseId: string, stream: 'stdout' | 'stderr', text: string, offset: number) => void
}

/** Output shown while the tool runs; offsets count the redacted bytes. */
export function createLiveOutput({ redactor, onOutput }: LiveOutputDeps, toolUseId: string) {
  const streams = { stdout: { texts: redactor.stream(), shown: 0 }, stderr: { texts: redactor.stream(), shown: 0 } }
  const show = (name: 'stdout' | 'stderr', text: string) => {
    if (text === '') return
    onOutput(toolUseId, name, text, streams[name].shown)
    streams[name].shown += Buffer.byteLength(text)
  }
  return {
    add: (name: 'stdout' | 'stderr', text: string) => show(name, streams[name].texts.push(text)),
    end: () => {
      show('stdout', streams.stdout.texts.flush())
      show('stderr', streams.stderr.texts.flush())
    },
  }
}
