/** Raw requests to the route of AG-UI, without its client. */
import { EventSchema } from '@ag-ui/core/schemas'
import { KEY } from './server.ts'

export type RunSendOptions = { readonly key: string; readonly path: string; readonly origin: string }
export type SentRun = { status: number; headers: Headers; body: any; events: any[] } // eslint-disable-line typescript/no-explicit-any

/** Resolves at the end of the run. The form of its events is checked. */
export async function sendRun(
  url: string,
  input: unknown,
  { key = KEY, path = '/ag-ui/coder', origin = '' }: Partial<RunSendOptions> = {},
): Promise<SentRun> {
  const headers = {
    'content-type': 'application/json',
    accept: 'text/event-stream',
    ...(key !== '' && { authorization: `Bearer ${key}` }),
    ...(origin !== '' && { origin }),
  }
  const body = typeof input === 'string' ? input : JSON.stringify(input)
  const response = await fetch(`${url}${path}`, { method: 'POST', headers, body })
  const text = await response.text()
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const frames = isStream ? text.split('\n\n').filter((frame) => frame.startsWith('data: ')) : []
  const events = frames.map((frame) => EventSchema.parse(JSON.parse(frame.slice('data: '.length))))
  return { status: response.status, headers: response.headers, body: isStream ? undefined : JSON.parse(text), events }
}
