const name = { type: 'string', minLength: 1, maxLength: 100 };
const environment = { type: 'string', maxLength: 63, pattern: '^([a-z0-9][a-z0-9._-]{0,62}|env_[0-9A-Z]{26})$' };
const path = { type: 'string', minLength: 1, maxLength: 1_000 };

/** The schema of `atrium.yaml`. The contract publishes the same as `AppManifest`. A test compares them. */
export const manifestSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'components'],
  properties: {
    name,
    environment,
    components: {
      type: 'array',
      minItems: 1,
      maxItems: 50,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'kind', 'command'],
        properties: {
          name: { type: 'string', maxLength: 63, pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$' },
          kind: { type: 'string', enum: ['process', 'webhook', 'schedule', 'web'] },
          command: { type: 'string', minLength: 1, maxLength: 20_000 },
          cwd: path,
          environment,
          env: {
            type: 'object',
            maxProperties: 100,
            propertyNames: { type: 'string', maxLength: 128, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' },
            additionalProperties: { type: ['string', 'number', 'boolean'], maxLength: 10_000 },
          },
          secrets: {
            type: 'array',
            maxItems: 100,
            uniqueItems: true,
            items: { type: 'string', maxLength: 128, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' },
          },
          timeout: { type: 'integer', minimum: 1, maximum: 86_400 },
          retry: {
            type: 'object',
            additionalProperties: false,
            required: ['attempts'],
            properties: {
              attempts: { type: 'integer', minimum: 1, maximum: 10 },
              delay: { type: 'integer', minimum: 0, maximum: 3_600 },
            },
          },
          concurrency: { type: 'integer', minimum: 1, maximum: 20 },
          default: { type: 'boolean' },
          auth: { type: 'string', enum: ['signature', 'none'] },
          cron: { type: 'string', minLength: 9, maxLength: 200 },
          timeZone: { type: 'string', minLength: 1, maxLength: 100 },
          overlap: { type: 'string', enum: ['skip', 'queue', 'interrupt'] },
          jitter: { type: 'integer', minimum: 0, maximum: 3_600 },
          port: { type: 'integer', minimum: 1, maximum: 65_535 },
        },
      },
    },
  },
} as const;
