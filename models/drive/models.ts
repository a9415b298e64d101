import { modelsOf } from '../database/bound.ts';
import { defineDrive } from './drive.ts';
import { defineDriveItem } from './driveItem.ts';
import { defineDriveObject } from './driveObject.ts';
import { defineDriveUpload } from './driveUpload.ts';
import { defineDriveVersion } from './driveVersion.ts';

export const driveModels = modelsOf((sequelize) => {
  const Drive = defineDrive(sequelize);
  const DriveObject = defineDriveObject(sequelize, Drive);
  return {
    Drive,
    DriveObject,
    DriveItem: defineDriveItem(sequelize, Drive),
    DriveUpload: defineDriveUpload(sequelize),
    DriveVersion: defineDriveVersion(sequelize, DriveObject),
  };
});
