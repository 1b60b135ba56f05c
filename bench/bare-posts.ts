/** What deliveries are measured against: posts the bodies it is sent to a URL, one after the other, over and over. */
import { Agent, request } from 'undici'

type Job = { readonly url: string; readonly bodies: readonly string[]; readonly lanes: number }

const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 })

process.on('message', ({ url, bodies, lanes }: Job) => {
  void Promise.all(Array.from({ length: lanes }, () => postAll(url, bodies)))
})
process.send!('ready')

async function postAll(url: string, bodies: readonly string[]): Promise<void> {
  for (const body of bodies) {
    const headers = { 'content-type': 'application/json' }
    const answer = await request(url, { dispatcher, method: 'POST', headers, body })
    await answer.body.dump()
  }
}
