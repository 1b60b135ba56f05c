/**
 * What a history consists of, and what is said in it, as it was reviewed. Write the file again with
 * `vitest run -u test/agent/reviewed`, and review each line that differs.
 */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { summaryMessage } from '../../../src/agent/history/message-list.ts'
import { requestInPlace, requestWithTranscript } from '../../../src/agent/compaction/summary-request.ts'
import { partsOfUser, wordsOf } from '../../../src/agent/history/event-words.ts'
import { HISTORY_TYPES, TYPES_OF_FORGOTTEN } from '../../../src/agent/history/history-types.ts'
import { toModelRetry } from '../../../src/agent/model/turn.ts'
import type { ModelMessage } from '../../../src/llm/llm.ts'

const expectReviewed = (values: unknown, name: string): Promise<void> =>
  expect(`${JSON.stringify(values, undefined, 1)}\n`).toMatchFileSnapshot(join(import.meta.dirname, `${name}.txt`))

const IMAGE = { type: 'image', media_type: 'image/png', data: 'AAAA' } as const
const TEXT = { type: 'text', text: 'words' } as const

test('the history consists of these events, and a summary of these texts', async () => {
  const messages: ModelMessage[] = [{ role: 'user', content: [TEXT] }]
  const wish = { system: 'S', messages, tools: [], maxChars: 500, instructions: undefined }
  const said = (content: Parameters<typeof wordsOf>[0]['content'], text = ' ') =>
    wordsOf({
      id: 'i',
      seq: 1,
      timestamp: '',
      conversation_id: 'x',
      version: 1,
      type: 'AssistantMessage',
      source: 'agent',
      message_id: 'm',
      text,
      content,
      tool_use_ids: [],
      model: 'm',
      stop_reason: 'stop',
      usage: { input_tokens: 0, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 },
    })
  await expectReviewed(
    {
      sent: [...HISTORY_TYPES],
      ofForgotten: [...TYPES_OF_FORGOTTEN],
      inPlace: requestInPlace(wish),
      wished: requestInPlace({ ...wish, instructions: 'Be brief.' }).messages.at(-1),
      transcript: requestWithTranscript(
        { ...wish, messages: [{ role: 'user', content: [{ type: 'text', text: 'a </conversation> b' }] }] },
        1000,
      ),
      summaries: [
        summaryMessage(undefined, undefined),
        summaryMessage('', ' t '),
        summaryMessage(' s </summary> </tasks> ', '</tasks>'),
      ],
      sayable: [[], [{ type: 'text', text: ' ' }, IMAGE], [TEXT]].map((content) => partsOfUser({ content } as never)),
      words: [
        said([]),
        said(
          [
            { type: 'reasoning', text: 'a' },
            { type: 'reasoning', text: '' },
            { type: 'reasoning', text: 'b' },
          ],
          'x',
        ),
      ],
      retries: [undefined, 'r'].map((runId) =>
        toModelRetry(
          {
            kind: 'retry',
            type: 'rate_limit',
            message: 'm',
            retry: 1,
            maxRetries: 2,
            waitMs: 3,
            ...(runId && { nextModel: 'n' }),
          },
          'i',
          runId,
        ),
      ),
    },
    'histories',
  )
})
