/** Requests of all protocols that a test changes. */

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'a', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
}
export const UUID = '0190b8a0-0000-7000-8000-000000000000'
const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
/** Routes, and bodies that have each field that they read. */
export const PROTOCOL_BODIES: readonly (readonly [path: string, body: Readonly<Record<string, unknown>>])[] = [
  [
    '/v1/responses',
    {
      model: 'default',
      input: [
        {
          type: 'message',
          role: 'user',
          content: [
            { type: 'input_text', text: 'x' },
            { type: 'input_image', image_url: PIXEL, detail: 'auto' },
            { type: 'input_file', file_data: PIXEL, filename: 'x' },
          ],
        },
      ],
    },
  ],
  [
    '/v1/responses',
    {
      model: 'default',
      input: [
        {
          role: 'assistant',
          content: [{ type: 'output_text', text: 'x', annotations: [] }],
          id: 'm',
          status: 'completed',
          type: 'message',
        },
        { type: 'reasoning', id: 'r', summary: [] },
        { role: 'user', content: 'x' },
      ],
    },
  ],
  [
    '/v1/responses',
    {
      model: 'default',
      input: [
        { type: 'function_call', call_id: 'c', name: 'x', arguments: '{}' },
        {
          type: 'function_call_output',
          call_id: `call_${UUID.replaceAll('-', '')}_x`,
          output: [{ type: 'input_text', text: 'x' }],
        },
        { type: 'mcp_approval_response', approval_request_id: `mcpr_${UUID}`, approve: true, reason: 'x' },
        { type: 'item_reference', id: 'x' },
      ],
    },
  ],
  [
    '/v1/responses',
    {
      model: 'default',
      input: 'x',
      tools: [
        { type: 'mcp', server_label: 'agent-server', server_url: 'x' },
        {
          type: 'function',
          name: 'look',
          description: 'x',
          parameters: { type: 'object', properties: {} },
          strict: true,
        },
      ],
      tool_choice: { type: 'function', name: 'look' },
      text: { format: { type: 'json_schema', name: 'x', schema: { type: 'object' }, strict: true }, verbosity: 'low' },
      reasoning: { effort: 'low', summary: 'auto' },
      stream_options: { include_obfuscation: false },
      include: [],
      truncation: 'auto',
      user: 'x',
      metadata: { a: 'b' },
      conversation: { id: 'x' },
    },
  ],
  [
    '/v1/chat/completions',
    {
      model: 'default',
      messages: [
        { role: 'system', content: [{ type: 'text', text: 'x' }], name: 'x' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'x' },
            { type: 'image_url', image_url: { url: PIXEL, detail: 'low' } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'call_x', type: 'function', function: { name: 'x', arguments: '{}' } }],
          refusal: null,
        },
        { role: 'tool', tool_call_id: 'call_x', content: 'x' },
        { role: 'user', content: 'x' },
      ],
      tools: [
        { type: 'function', function: { name: 'x', description: 'd', parameters: { type: 'object' }, strict: true } },
      ],
      tool_choice: { type: 'function', function: { name: 'x' } },
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } },
      stream_options: { include_usage: true },
    },
  ],
  [
    '/ai/chat',
    {
      id: 'x',
      trigger: 'submit-message',
      messages: [
        {
          id: 'u',
          role: 'user',
          metadata: {},
          parts: [
            { type: 'text', text: 'x' },
            { type: 'file', mediaType: 'image/png', url: PIXEL, filename: 'x' },
            { type: 'data-answer', data: { request_id: UUID, answers: { 0: 'x' } } },
          ],
        },
      ],
    },
  ],
  [
    '/ai/chat',
    {
      id: 'x2',
      trigger: 'submit-message',
      client_tools: [{ name: 'look', description: 'x', input_schema: { type: 'object' } }],
      messages: [
        {
          id: 'a',
          role: 'assistant',
          parts: [
            { type: 'step-start' },
            { type: 'tool-look', toolCallId: 'c', state: 'output-available', input: {}, output: 'x' },
            {
              type: 'dynamic-tool',
              toolName: 'Bash',
              toolCallId: 'c',
              state: 'approval-responded',
              input: {},
              approval: { id: `${UUID}:c`, approved: true, reason: 'x' },
            },
          ],
        },
      ],
    },
  ],
  [
    '/ag-ui/default',
    {
      threadId: 't3',
      runId: 'r',
      parentRunId: 'p',
      protocolVersion: '1.0',
      messages: [
        {
          id: 'm',
          role: 'user',
          content: [
            { type: 'text', text: 'x' },
            { type: 'image', source: { type: 'data', value: PIXEL.slice(22), mimeType: 'image/png' } },
            { type: 'binary', mimeType: 'image/png', data: 'x', url: 'x' },
          ],
        },
        {
          id: 'n',
          role: 'assistant',
          content: 'x',
          toolCalls: [{ id: 'c', type: 'function', function: { name: 'x', arguments: '{}' } }],
        },
        { id: 'o', role: 'tool', toolCallId: 'c', content: 'x' },
        { id: 'p', role: 'user', content: 'y' },
      ],
      tools: [{ name: 'look', description: 'x', parameters: { type: 'object' } }],
      context: [{ description: 'x', value: 'y' }],
      state: {},
      forwardedProps: {},
      resume: [
        { interruptId: `${UUID}:c`, status: 'resolved', payload: { approved: true, editedArgs: {}, message: 'x' } },
      ],
    },
  ],
  [
    '/mcp',
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name: 'decide',
        arguments: {
          conversation_id: UUID,
          request_id: UUID,
          tool_use_id: 'x',
          input_hash: '0'.repeat(64),
          behavior: 'allow',
          message: 'x',
          wait_seconds: 1,
        },
        _meta: { ...META, progressToken: 1 },
      },
    },
  ],
  [
    '/mcp',
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'tasks/update',
      params: {
        taskId: `${UUID}.1`,
        inputResponses: { a: { action: 'accept', content: {} } },
        requestState: 'x',
        _meta: META,
      },
    },
  ],
  [
    '/mcp',
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: { elicitation: {} },
        clientInfo: { name: 'x', version: '1' },
      },
    },
  ],
  [
    '/a2a',
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: {
        message: {
          messageId: 'm9',
          role: 'ROLE_USER',
          parts: [
            { text: 'x', mediaType: 'text/plain', filename: 'f', metadata: {} },
            {
              data: {
                request_id: UUID,
                kind: 'permission',
                decisions: [{ tool_use_id: 'x', input_hash: 'y', behavior: 'allow' }],
              },
            },
            { raw: 'aGk=', mediaType: 'image/png' },
            { url: 'http://x', mediaType: 'image/png' },
          ],
          referenceTaskIds: ['x'],
          extensions: [],
        },
        configuration: {
          acceptedOutputModes: ['text'],
          taskPushNotificationConfig: {
            id: 'x',
            url: 'https://example.com',
            token: 't',
            authentication: { scheme: 'Bearer', credentials: 'x' },
          },
        },
        metadata: { profile: 'default' },
      },
    },
  ],
  [
    '/a2a',
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'ListTasks',
      params: {
        contextId: 'x',
        status: 'TASK_STATE_WORKING',
        pageSize: 1,
        pageToken: '1',
        historyLength: 1,
        statusTimestampAfter: '2026-01-01T00:00:00Z',
        includeArtifacts: true,
      },
    },
  ],
  [
    '/a2a',
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'CreateTaskPushNotificationConfig',
      params: { taskId: `${UUID}-1`, id: 'x', url: 'https://example.com', token: 'x' },
    },
  ],
  [
    '/v1/conversations',
    { items: [{ type: 'message', role: 'user', content: 'x' }], metadata: { a: 'b' }, model: 'default' },
  ],
  ['/ag-ui/default/stop', { threadId: 't' }],
  [
    '/a2a/v1/message:send',
    {
      message: { messageId: 'm8', role: 'ROLE_USER', parts: [{ text: 'x' }], contextId: 'c', taskId: '' },
      configuration: { historyLength: 1, returnImmediately: true },
    },
  ],
]
