"""The names of Alink 1.6.2 that akrunner does not have, by kind; `akrunner.alink.absent` says what to use for each kind."""

NAMES = {
    "boosting": """
        XGBoostClassificationModel XGBoostClassifier XGBoostPredictBatchOp XGBoostPredictStreamOp XGBoostRegPredictBatchOp
        XGBoostRegPredictStreamOp XGBoostRegTrainBatchOp XGBoostRegressionModel XGBoostRegressor XGBoostTrainBatchOp
    """,
    "deep": """
        BertClassificationModel BertRegressionModel BertTextClassifier BertTextClassifierPredictBatchOp
        BertTextClassifierPredictStreamOp BertTextClassifierTrainBatchOp BertTextEmbedding BertTextEmbeddingBatchOp
        BertTextEmbeddingStreamOp BertTextPairClassifier BertTextPairClassifierPredictBatchOp
        BertTextPairClassifierPredictStreamOp BertTextPairClassifierTrainBatchOp BertTextPairRegressor
        BertTextPairRegressorPredictBatchOp BertTextPairRegressorPredictStreamOp BertTextPairRegressorTrainBatchOp
        BertTextRegressor BertTextRegressorPredictBatchOp BertTextRegressorPredictStreamOp BertTextRegressorTrainBatchOp
        BertTokenizer DLLauncherBatchOp DLLauncherStreamOp DeepARPredictBatchOp DeepARPredictStreamOp DeepARTrainBatchOp
        EasyTransferConfigTrainBatchOp LSTNetPredictBatchOp LSTNetPredictStreamOp LSTNetTrainBatchOp
    """,
    "embeddings": """
        HugeDeepWalkTrainBatchOp HugeLabeledWord2VecTrainBatchOp HugeMetaPath2VecTrainBatchOp HugeNode2VecTrainBatchOp
        HugeWord2VecTrainBatchOp
    """,
    "evaluation": """
        EvalBinaryClassBatchOp EvalBinaryClassStreamOp EvalClusterBatchOp EvalMultiClassBatchOp EvalMultiClassStreamOp
        EvalMultiLabelBatchOp EvalOutlierBatchOp EvalOutlierStreamOp EvalRankingBatchOp EvalRegressionBatchOp
        EvalRegressionStreamOp EvalTimeSeriesBatchOp
    """,
    "features": """
        AddressParserBatchOp AutoCross AutoCrossAlgo AutoCrossAlgoModel AutoCrossAlgoTrainBatchOp AutoCrossModel
        AutoCrossPredictBatchOp AutoCrossTrainBatchOp BaseStepWiseSelectorBatchOp Binarizer BinarizerBatchOp
        BinarizerStreamOp BinarySelectorPredictBatchOp BinarySelectorTrainBatchOp Binning BinningModel
        BinningModelInfoBatchOp BinningPredictBatchOp BinningPredictStreamOp BinningTrainBatchOp
        BinningTrainForScorecardBatchOp Bucketizer BucketizerBatchOp BucketizerStreamOp C45Encoder C45EncoderModel
        C45EncoderTrainBatchOp CartEncoder CartEncoderModel CartEncoderTrainBatchOp CartRegEncoder CartRegEncoderModel
        CartRegEncoderTrainBatchOp ChiSqSelectorBatchOp ChisqSelectorModelInfoBatchOp
        ConstrainedBinarySelectorPredictBatchOp ConstrainedBinarySelectorTrainBatchOp ConstrainedDivergenceTrainBatchOp
        ConstrainedLinearRegTrainBatchOp ConstrainedLogisticRegressionTrainBatchOp ConstrainedRegSelectorPredictBatchOp
        ConstrainedRegSelectorTrainBatchOp CrossCandidateSelector CrossCandidateSelectorModel
        CrossCandidateSelectorPredictBatchOp CrossCandidateSelectorTrainBatchOp CrossFeature CrossFeatureModel
        CrossFeaturePredictBatchOp CrossFeaturePredictStreamOp CrossFeatureTrainBatchOp DCT DCTBatchOp DCTStreamOp
        DecisionTreeEncoder DecisionTreeEncoderModel DecisionTreeEncoderTrainBatchOp DecisionTreeRegEncoder
        DecisionTreeRegEncoderModel DecisionTreeRegEncoderTrainBatchOp EqualWidthDiscretizer EqualWidthDiscretizerModel
        EqualWidthDiscretizerModelInfoBatchOp EqualWidthDiscretizerPredictBatchOp EqualWidthDiscretizerPredictStreamOp
        EqualWidthDiscretizerTrainBatchOp ExclusiveFeatureBundle ExclusiveFeatureBundleModel
        ExclusiveFeatureBundleModelInfoBatchOp ExclusiveFeatureBundlePredictBatchOp FeatureHasher FeatureHasherBatchOp
        FeatureHasherStreamOp GbdtEncoder GbdtEncoderModel GbdtEncoderPredictBatchOp GbdtEncoderTrainBatchOp GbdtRegEncoder
        GbdtRegEncoderModel GbdtRegEncoderTrainBatchOp GenerateFeatureOfLatestBatchOp GenerateFeatureOfLatestNDaysBatchOp
        GenerateFeatureOfLatestStreamOp GenerateFeatureOfWindowBatchOp GenerateFeatureOfWindowStreamOp GroupScoreModel
        GroupScorecardPredictBatchOp GroupScorecardTrainBatchOp HashCrossFeature HashCrossFeatureBatchOp
        HashCrossFeatureStreamOp HopTimeWindowStreamOp HugeIndexerStringPredictBatchOp HugeMultiIndexerStringPredictBatchOp
        HugeMultiStringIndexerPredictBatchOp HugeStringIndexerPredictBatchOp Id3Encoder Id3EncoderModel
        Id3EncoderTrainBatchOp Imputer ImputerModel ImputerModelInfoBatchOp ImputerPredictBatchOp ImputerPredictStreamOp
        ImputerTrainBatchOp IndexToString IndexToStringPredictBatchOp IndexToStringPredictStreamOp JsonValue
        JsonValueBatchOp JsonValueStreamOp MaxAbsScaler MaxAbsScalerModel MaxAbsScalerModelInfoBatchOp
        MaxAbsScalerPredictBatchOp MaxAbsScalerPredictStreamOp MaxAbsScalerTrainBatchOp MinMaxScaler MinMaxScalerModel
        MinMaxScalerModelInfoBatchOp MinMaxScalerPredictBatchOp MinMaxScalerPredictStreamOp MinMaxScalerTrainBatchOp
        MultiHotEncoder MultiHotEncoderModel MultiHotModelInfoBatchOp MultiHotPredictBatchOp MultiHotPredictStreamOp
        MultiHotTrainBatchOp MultiStringIndexer MultiStringIndexerModel MultiStringIndexerPredictBatchOp
        MultiStringIndexerPredictStreamOp MultiStringIndexerTrainBatchOp OneHotEncoder OneHotEncoderModel
        OneHotModelInfoBatchOp OneHotPredictBatchOp OneHotPredictStreamOp OneHotTrainBatchOp OverCountWindowStreamOp
        OverTimeWindowStreamOp OverWindowBatchOp PCA PCAModel PcaModelInfoBatchOp PcaPredictBatchOp PcaPredictStreamOp
        PcaTrainBatchOp QuantileDiscretizer QuantileDiscretizerModel QuantileDiscretizerModelInfoBatchOp
        QuantileDiscretizerPredictBatchOp QuantileDiscretizerPredictStreamOp QuantileDiscretizerTrainBatchOp
        RandomForestEncoder RandomForestEncoderModel RandomForestEncoderTrainBatchOp RandomForestRegEncoder
        RandomForestRegEncoderModel RandomForestRegEncoderTrainBatchOp RegressionSelectorPredictBatchOp
        RegressionSelectorTrainBatchOp ScoreModel ScorecardModel ScorecardModelInfoBatchOp ScorecardPredictBatchOp
        ScorecardPredictStreamOp ScorecardTrainBatchOp SessionTimeWindowStreamOp SimpleGroupScoreModel
        SparseFeatureIndexerPredictBatchOp SparseFeatureIndexerTrainBatchOp StandardScaler StandardScalerModel
        StandardScalerModelInfoBatchOp StandardScalerPredictBatchOp StandardScalerPredictStreamOp StandardScalerTrainBatchOp
        StringIndexer StringIndexerModel StringIndexerPredictBatchOp StringIndexerPredictStreamOp StringIndexerTrainBatchOp
        TargetEncoder TargetEncoderModel TargetEncoderPredictBatchOp TargetEncoderPredictStreamOp TargetEncoderTrainBatchOp
        TreeModelEncoderBatchOp TreeModelEncoderStreamOp TumbleTimeWindowStreamOp VectorChiSqSelectorBatchOp
        WoePredictBatchOp WoeTrainBatchOp
    """,
    "formats": """
        ColumnsToCsv ColumnsToCsvBatchOp ColumnsToCsvStreamOp ColumnsToJson ColumnsToJsonBatchOp ColumnsToJsonStreamOp
        ColumnsToKv ColumnsToKvBatchOp ColumnsToKvStreamOp ColumnsToTripleBatchOp ColumnsToTripleStreamOp ColumnsToVector
        ColumnsToVectorBatchOp ColumnsToVectorStreamOp CsvToColumns CsvToColumnsBatchOp CsvToColumnsStreamOp CsvToJson
        CsvToJsonBatchOp CsvToJsonStreamOp CsvToKv CsvToKvBatchOp CsvToKvStreamOp CsvToTripleBatchOp CsvToTripleStreamOp
        CsvToVector CsvToVectorBatchOp CsvToVectorStreamOp FlattenMTableBatchOp FlattenMTableStreamOp JsonToColumns
        JsonToColumnsBatchOp JsonToColumnsStreamOp JsonToCsv JsonToCsvBatchOp JsonToCsvStreamOp JsonToKv JsonToKvBatchOp
        JsonToKvStreamOp JsonToTripleBatchOp JsonToTripleStreamOp JsonToVector JsonToVectorBatchOp JsonToVectorStreamOp
        KvToColumns KvToColumnsBatchOp KvToColumnsStreamOp KvToCsv KvToCsvBatchOp KvToCsvStreamOp KvToJson KvToJsonBatchOp
        KvToJsonStreamOp KvToTripleBatchOp KvToTripleStreamOp KvToVector KvToVectorBatchOp KvToVectorStreamOp ToMTable
        ToMTableBatchOp ToMTableStreamOp TripleToColumnsBatchOp TripleToCsvBatchOp TripleToJsonBatchOp TripleToKvBatchOp
        TripleToVectorBatchOp VectorToColumns VectorToColumnsBatchOp VectorToColumnsStreamOp VectorToCsv VectorToCsvBatchOp
        VectorToCsvStreamOp VectorToJson VectorToJsonBatchOp VectorToJsonStreamOp VectorToKv VectorToKvBatchOp
        VectorToKvStreamOp VectorToTripleBatchOp VectorToTripleStreamOp
    """,
    "graphs": """
        CommonNeighborsBatchOp CommunityDetectionClassifyBatchOp CommunityDetectionClusterBatchOp ConnectedComponentsBatchOp
        DeepWalkBatchOp EdgeClusterCoefficientBatchOp KCoreBatchOp LineBatchOp MetaPath2VecBatchOp MetaPathWalkBatchOp
        ModularityCalBatchOp MultiSourceShortestPathBatchOp Node2VecBatchOp Node2VecWalkBatchOp PageRankBatchOp
        RandomWalkBatchOp SingleSourceShortestPathBatchOp TreeDepthBatchOp TriangleListBatchOp
        VertexClusterCoefficientBatchOp VertexNeighborSearchBatchOp
    """,
    "learning": """
        AftSurvivalRegModelInfoBatchOp AftSurvivalRegPredictBatchOp AftSurvivalRegPredictStreamOp AftSurvivalRegTrainBatchOp
        AftSurvivalRegression AftSurvivalRegressionModel AgnesBatchOp AgnesModelInfoBatchOp BisectingKMeans
        BisectingKMeansModel BisectingKMeansModelInfoBatchOp BisectingKMeansPredictBatchOp BisectingKMeansPredictStreamOp
        BisectingKMeansTrainBatchOp BoxPlotOutlier4GroupedDataBatchOp BoxPlotOutlier4GroupedDataStreamOp
        BoxPlotOutlierBatchOp BoxPlotOutlierStreamOp C45 C45Model C45ModelInfoBatchOp C45PredictBatchOp C45PredictStreamOp
        C45TrainBatchOp Cart CartModel CartModelInfoBatchOp CartPredictBatchOp CartPredictStreamOp CartReg CartRegModel
        CartRegModelInfoBatchOp CartRegPredictBatchOp CartRegPredictStreamOp CartRegTrainBatchOp CartTrainBatchOp
        CooksDistanceOutlierBatchOp CopodOutlier4GroupedDataBatchOp CopodOutlier4GroupedDataStreamOp CopodOutlierBatchOp
        CopodOutlierStreamOp Dbscan DbscanBatchOp DbscanModel DbscanModelInfoBatchOp DbscanModelOutlierPredictStreamOp
        DbscanOutlier4GroupedDataBatchOp DbscanOutlier4GroupedDataStreamOp DbscanOutlierBatchOp DbscanOutlierStreamOp
        DbscanPredictBatchOp DbscanPredictStreamOp DecisionTreeClassificationModel DecisionTreeClassifier
        DecisionTreeModelInfoBatchOp DecisionTreePredictBatchOp DecisionTreePredictStreamOp DecisionTreeRegModelInfoBatchOp
        DecisionTreeRegPredictBatchOp DecisionTreeRegPredictStreamOp DecisionTreeRegTrainBatchOp DecisionTreeRegressionModel
        DecisionTreeRegressor DecisionTreeTrainBatchOp DynamicTimeWarpOutlierStreamOp EcodOutlier4GroupedDataBatchOp
        EcodOutlier4GroupedDataStreamOp EcodOutlierBatchOp EcodOutlierStreamOp EsdOutlier4GroupedDataBatchOp
        EsdOutlier4GroupedDataStreamOp EsdOutlierBatchOp EsdOutlierStreamOp FmClassificationModel FmClassifier
        FmClassifierModelInfoBatchOp FmClassifierPredictBatchOp FmClassifierPredictStreamOp FmClassifierTrainBatchOp
        FmPredictBatchOp FmRegressionModel FmRegressor FmRegressorModelInfoBatchOp FmRegressorPredictBatchOp
        FmRegressorPredictStreamOp FmRegressorTrainBatchOp GaussianMixture GaussianMixtureModel GbdtClassificationModel
        GbdtClassifier GbdtModelInfoBatchOp GbdtPredictBatchOp GbdtPredictStreamOp GbdtRegModelInfoBatchOp
        GbdtRegPredictBatchOp GbdtRegPredictStreamOp GbdtRegTrainBatchOp GbdtRegressionModel GbdtRegressor GbdtTrainBatchOp
        GeneralizedLinearRegression GeneralizedLinearRegressionModel GeoKMeans GeoKMeansModel GeoKMeansPredictBatchOp
        GeoKMeansPredictStreamOp GeoKMeansTrainBatchOp GlmEvaluationBatchOp GlmModelInfoBatchOp GlmPredictBatchOp
        GlmPredictStreamOp GlmTrainBatchOp GmmModelInfoBatchOp GmmPredictBatchOp GmmPredictStreamOp GmmTrainBatchOp
        GroupDbscanBatchOp GroupDbscanModelBatchOp GroupEmBatchOp GroupGeoDbscanBatchOp GroupGeoDbscanModelBatchOp
        GroupKMeansBatchOp HbosOutlier4GroupedDataBatchOp HbosOutlier4GroupedDataStreamOp HbosOutlierBatchOp
        HbosOutlierStreamOp IForestModelOutlier IForestModelOutlierModel IForestModelOutlierPredictBatchOp
        IForestModelOutlierPredictStreamOp IForestModelOutlierTrainBatchOp IForestOutlier4GroupedData
        IForestOutlier4GroupedDataBatchOp IForestOutlier4GroupedDataStreamOp IForestOutlierBatchOp IForestOutlierStreamOp
        Id3 Id3Model Id3ModelInfoBatchOp Id3PredictBatchOp Id3PredictStreamOp Id3TrainBatchOp IsotonicRegPredictBatchOp
        IsotonicRegPredictStreamOp IsotonicRegTrainBatchOp IsotonicRegression IsotonicRegressionModel KMeans KMeansModel
        KMeansModelInfoBatchOp KMeansPredictBatchOp KMeansPredictStreamOp KMeansTrainBatchOp KModes KModesModel
        KModesPredictBatchOp KModesPredictStreamOp KModesTrainBatchOp KSigmaOutlier4GroupedDataBatchOp
        KSigmaOutlier4GroupedDataStreamOp KSigmaOutlierBatchOp KSigmaOutlierStreamOp KdeOutlierBatchOp KdeOutlierStreamOp
        KnnClassificationModel KnnClassifier KnnPredictBatchOp KnnPredictStreamOp KnnTrainBatchOp LassoRegModelInfoBatchOp
        LassoRegPredictBatchOp LassoRegPredictStreamOp LassoRegTrainBatchOp LassoRegression LassoRegressionModel Lda
        LdaModel LdaModelInfoBatchOp LdaPredictBatchOp LdaPredictStreamOp LdaTrainBatchOp LinearRegModelInfoBatchOp
        LinearRegPredictBatchOp LinearRegPredictStreamOp LinearRegStepwise LinearRegStepwiseModel
        LinearRegStepwisePredictBatchOp LinearRegStepwisePredictStreamOp LinearRegStepwiseTrainBatchOp LinearRegTrainBatchOp
        LinearRegWithSummaryResult LinearRegression LinearRegressionModel LinearSvm LinearSvmModel LinearSvmModelInfoBatchOp
        LinearSvmPredictBatchOp LinearSvmPredictStreamOp LinearSvmTrainBatchOp LinearSvr LinearSvrModel
        LinearSvrPredictBatchOp LinearSvrPredictStreamOp LinearSvrTrainBatchOp LofOutlierBatchOp LofOutlierStreamOp
        LogisticRegression LogisticRegressionModel LogisticRegressionModelInfoBatchOp LogisticRegressionPredictBatchOp
        LogisticRegressionPredictStreamOp LogisticRegressionTrainBatchOp MadOutlierBatchOp
        MultilayerPerceptronClassificationModel MultilayerPerceptronClassifier MultilayerPerceptronPredictBatchOp
        MultilayerPerceptronPredictStreamOp MultilayerPerceptronTrainBatchOp NaiveBayes NaiveBayesModel
        NaiveBayesModelInfoBatchOp NaiveBayesPredictBatchOp NaiveBayesPredictStreamOp NaiveBayesTextClassifier
        NaiveBayesTextModel NaiveBayesTextModelInfoBatchOp NaiveBayesTextPredictBatchOp NaiveBayesTextPredictStreamOp
        NaiveBayesTextTrainBatchOp NaiveBayesTrainBatchOp OcsvmModelOutlier OcsvmModelOutlierModel
        OcsvmModelOutlierPredictBatchOp OcsvmModelOutlierPredictStreamOp OcsvmModelOutlierTrainBatchOp
        OcsvmOutlier4GroupedDataBatchOp OcsvmOutlier4GroupedDataStreamOp OcsvmOutlierBatchOp OcsvmOutlierStreamOp
        OnePassClusterStreamOp OneVsRest OneVsRestModel RandomForestClassificationModel RandomForestClassifier
        RandomForestModelInfoBatchOp RandomForestPredictBatchOp RandomForestPredictStreamOp RandomForestRegModelInfoBatchOp
        RandomForestRegPredictBatchOp RandomForestRegPredictStreamOp RandomForestRegTrainBatchOp RandomForestRegressionModel
        RandomForestRegressor RandomForestTrainBatchOp RidgeRegModelInfoBatchOp RidgeRegPredictBatchOp
        RidgeRegPredictStreamOp RidgeRegTrainBatchOp RidgeRegression RidgeRegressionModel SHEsdOutlierBatchOp Softmax
        SoftmaxModel SoftmaxModelInfoBatchOp SoftmaxPredictBatchOp SoftmaxPredictStreamOp SoftmaxTrainBatchOp
        SosOutlierBatchOp SosOutlierStreamOp StreamingKMeansStreamOp TimeSeriesDecomposeDetectBatchOp
        TimeSeriesDecomposeDetectStreamOp
    """,
    "media": """
        ExtractMfccFeature ExtractMfccFeatureBatchOp ExtractMfccFeatureStreamOp ReadAudioToTensor ReadAudioToTensorBatchOp
        ReadAudioToTensorStreamOp ReadImageToTensor ReadImageToTensorBatchOp ReadImageToTensorStreamOp WriteTensorToImage
        WriteTensorToImageBatchOp WriteTensorToImageStreamOp
    """,
    "online": """
        BinaryClassPipelineModelFilterStreamOp FtrlModelFilterStreamOp FtrlPredictStreamOp FtrlTrainStreamOp
        OnlineFmModelFilterStreamOp OnlineFmTrainStreamOp OnlineLearningStreamOp
    """,
    "onnx": """
        OnnxModelPredictBatchOp OnnxModelPredictStreamOp OnnxModelPredictor
    """,
    "places": """
        DerbyCatalog FilePath FlinkFileSystem HadoopFileSystem HiveCatalog LocalFileSystem MySqlCatalog OdpsCatalog
        OssFileSystem S3HadoopFileSystem S3PrestoFileSystem SqliteCatalog
    """,
    "recommending": """
        AlsImplicitTrainBatchOp AlsItemsPerUserRecommBatchOp AlsItemsPerUserRecommStreamOp AlsItemsPerUserRecommender
        AlsModelInfoBatchOp AlsRateRecommBatchOp AlsRateRecommStreamOp AlsRateRecommender AlsSimilarItemsRecommBatchOp
        AlsSimilarItemsRecommStreamOp AlsSimilarItemsRecommender AlsSimilarUsersRecommBatchOp AlsSimilarUsersRecommStreamOp
        AlsSimilarUsersRecommender AlsTrainBatchOp AlsUsersPerItemRecommBatchOp AlsUsersPerItemRecommStreamOp
        AlsUsersPerItemRecommender FlattenKObjectBatchOp FlattenKObjectStreamOp FmItemsPerUserRecommBatchOp
        FmItemsPerUserRecommStreamOp FmItemsPerUserRecommender FmRateRecommBatchOp FmRateRecommender
        FmRecommBinaryImplicitTrainBatchOp FmRecommTrainBatchOp FmUsersPerItemRecommBatchOp FmUsersPerItemRecommStreamOp
        FmUsersPerItemRecommender HotProductStreamOp ItemCfItemsPerUserRecommBatchOp ItemCfItemsPerUserRecommStreamOp
        ItemCfItemsPerUserRecommender ItemCfModelInfoBatchOp ItemCfRateRecommBatchOp ItemCfRateRecommStreamOp
        ItemCfRateRecommender ItemCfSimilarItemsRecommBatchOp ItemCfSimilarItemsRecommStreamOp ItemCfSimilarItemsRecommender
        ItemCfTrainBatchOp ItemCfUsersPerItemRecommBatchOp ItemCfUsersPerItemRecommStreamOp ItemCfUsersPerItemRecommender
        LeaveKObjectOutBatchOp LeaveTopKObjectOutBatchOp NegativeItemSamplingBatchOp RecommendationRanking
        RecommendationRankingBatchOp RecommendationRankingStreamOp SwingRecommBatchOp SwingRecommStreamOp
        SwingSimilarItemsRecommender SwingTrainBatchOp UserCfItemsPerUserRecommBatchOp UserCfItemsPerUserRecommStreamOp
        UserCfItemsPerUserRecommender UserCfModelInfoBatchOp UserCfRateRecommBatchOp UserCfRateRecommStreamOp
        UserCfRateRecommender UserCfSimilarUsersRecommBatchOp UserCfSimilarUsersRecommStreamOp UserCfSimilarUsersRecommender
        UserCfTrainBatchOp UserCfUsersPerItemRecommBatchOp UserCfUsersPerItemRecommStreamOp UserCfUsersPerItemRecommender
    """,
    "rules": """
        ApplyAssociationRuleBatchOp ApplySequenceRuleBatchOp FpGrowthBatchOp GroupedFpGrowthBatchOp PrefixSpanBatchOp
    """,
    "series": """
        ArimaBatchOp ArimaStreamOp AutoArimaBatchOp AutoArimaStreamOp AutoGarchBatchOp AutoGarchStreamOp
        DeepARPreProcessBatchOp ExpandExtendedVarsStreamOp HoltWintersBatchOp HoltWintersStreamOp LSTNetPreProcessBatchOp
        LookupValueInTimeSeriesBatchOp LookupValueInTimeSeriesStreamOp LookupVectorInTimeSeriesBatchOp
        LookupVectorInTimeSeriesStreamOp ProphetBatchOp ProphetPredictBatchOp ProphetPredictStreamOp ProphetStreamOp
        ProphetTrainBatchOp ShiftBatchOp ShiftStreamOp
    """,
    "similarity": """
        StringApproxNearestNeighbor StringApproxNearestNeighborModel StringApproxNearestNeighborPredictBatchOp
        StringApproxNearestNeighborTrainBatchOp StringNearestNeighbor StringNearestNeighborModel
        StringNearestNeighborPredictBatchOp StringNearestNeighborTrainBatchOp StringSimilarityPairwise
        StringSimilarityPairwiseBatchOp StringSimilarityPairwiseStreamOp TextApproxNearestNeighbor
        TextApproxNearestNeighborModel TextApproxNearestNeighborPredictBatchOp TextApproxNearestNeighborTrainBatchOp
        TextNearestNeighbor TextNearestNeighborModel TextNearestNeighborPredictBatchOp TextNearestNeighborTrainBatchOp
        TextSimilarityPairwise TextSimilarityPairwiseBatchOp TextSimilarityPairwiseStreamOp VectorApproxNearestNeighbor
        VectorApproxNearestNeighborModel VectorApproxNearestNeighborPredictBatchOp VectorApproxNearestNeighborTrainBatchOp
        VectorNearestNeighbor VectorNearestNeighborModel VectorNearestNeighborPredictBatchOp
        VectorNearestNeighborTrainBatchOp
    """,
    "sinks": """
        CatalogSinkBatchOp CatalogSinkStreamOp DummySinkBatchOp Export2FileSinkStreamOp HBaseSinkBatchOp HBaseSinkStreamOp
        KafkaSinkStreamOp LibSvmSinkBatchOp LibSvmSinkStreamOp ModelStreamFileSinkStreamOp RedisRowSinkBatchOp
        RedisRowSinkStreamOp RedisStringSinkBatchOp RedisStringSinkStreamOp SocketSinkStreamOp TFRecordDatasetSinkBatchOp
        TFRecordDatasetSinkStreamOp TextSinkBatchOp TextSinkStreamOp TsvSinkBatchOp TsvSinkStreamOp XlsSinkBatchOp
        XlsSinkStreamOp
    """,
    "sources": """
        CatalogSourceBatchOp CatalogSourceStreamOp InternalCsvSourceBatchOp InternalCsvSourceBetaBatchOp
        InternalCsvSourceStreamOp KafkaSourceStreamOp LibSvmSourceBatchOp LibSvmSourceStreamOp ParquetSourceStreamOp
        RandomVectorSourceBatchOp RandomVectorSourceStreamOp TFRecordDatasetSourceBatchOp TFRecordDatasetSourceStreamOp
        TextSourceStreamOp TsvSourceBatchOp TsvSourceStreamOp XlsSourceBatchOp XlsSourceStreamOp
    """,
    "sql": """
        FullOuterJoinBatchOp GroupByBatchOp IntersectAllBatchOp IntersectBatchOp JoinBatchOp LeftOuterJoinBatchOp
        MinusAllBatchOp MinusBatchOp OrderByBatchOp PySqlCmdBatchOp PySqlCmdStreamOp RightOuterJoinBatchOp UnionAllStreamOp
        UnionBatchOp WindowGroupByStreamOp
    """,
    "statistics": """
        ChiSquareTestBatchOp CorrelationBatchOp InternalFullStatsBatchOp MdsBatchOp MultiCollinearityBatchOp QuantileBatchOp
        QuantileStreamOp RankingListBatchOp SomBatchOp SummarizerBatchOp VectorChiSquareTestBatchOp VectorCorrelationBatchOp
        VectorSummarizerBatchOp
    """,
    "tables": """
        AggLookup AggLookupBatchOp AggLookupStreamOp AppendIdBatchOp AppendIdStreamOp HugeLookupBatchOp Lookup LookupBatchOp
        LookupHBase LookupHBaseBatchOp LookupHBaseStreamOp LookupRecentDaysBatchOp LookupRecentDaysModel LookupRedisRow
        LookupRedisRowBatchOp LookupRedisRowStreamOp LookupRedisString LookupRedisStringBatchOp LookupRedisStringStreamOp
        LookupStreamOp RebalanceBatchOp RebalanceStreamOp SampleWithSizeBatchOp SpeedControlStreamOp StratifiedSampleBatchOp
        StratifiedSampleStreamOp StratifiedSampleWithSizeBatchOp WebTrafficIndexStreamOp WeightSampleBatchOp
    """,
    "torch": """
        TorchModelPredictBatchOp TorchModelPredictStreamOp TorchModelPredictor
    """,
    "tuning": """
        BayesSearchCV BayesSearchCVModel BayesSearchTVSplit BayesSearchTVSplitModel BinaryClassificationTuningEvaluator
        ClusterTuningEvaluator GridSearchCV GridSearchCVModel GridSearchTVSplit GridSearchTVSplitModel
        MultiClassClassificationTuningEvaluator ParamDist ParamGrid RandomSearchCV RandomSearchCVModel RandomSearchTVSplit
        RandomSearchTVSplitModel RegressionTuningEvaluator ValueDist
    """,
    "types": """
        BoolTensor ByteTensor DenseMatrix DenseVector DoubleTensor FloatTensor IntTensor LongTensor MTable SparseVector
        StringTensor Tensor UByteTensor Vector
    """,
    "utils": """
        AlinkDataTypes DataTypes InnerPredictBatchOp InnerPredictStreamOp MemSinkBatchOp PipelinePredictBatchOp
        PipelinePredictStreamOp PrintBatchOp PrintStreamOp PyFileScalarFnBatchOp PyFileTableFnBatchOp
        PyScalarFnBatchOp PyScalarFnStreamOp PyTableFnBatchOp PyTableFnStreamOp ScalarFunction SideOutputBatchOp
        SideOutputStreamOp SimpleSelectBatchOp SimpleSelectStreamOp TableFunction TableSourceStreamOp UDFBatchOp UDFStreamOp
        UDTFBatchOp UDTFStreamOp getMLEnv udaf udf udtf useCustomEnv
    """,
    "vectors": """
        TensorReshape TensorReshapeBatchOp TensorReshapeStreamOp ToVector ToVectorBatchOp ToVectorStreamOp VectorAssembler
        VectorAssemblerBatchOp VectorAssemblerStreamOp VectorBiFunction VectorBiFunctionBatchOp VectorBiFunctionStreamOp
        VectorElementwiseProduct VectorElementwiseProductBatchOp VectorElementwiseProductStreamOp VectorFunction
        VectorFunctionBatchOp VectorFunctionStreamOp VectorImputer VectorImputerModel VectorImputerModelInfoBatchOp
        VectorImputerPredictBatchOp VectorImputerPredictStreamOp VectorImputerTrainBatchOp VectorInteraction
        VectorInteractionBatchOp VectorInteractionStreamOp VectorMaxAbsScaler VectorMaxAbsScalerModel
        VectorMaxAbsScalerModelInfoBatchOp VectorMaxAbsScalerPredictBatchOp VectorMaxAbsScalerPredictStreamOp
        VectorMaxAbsScalerTrainBatchOp VectorMinMaxScaler VectorMinMaxScalerModel VectorMinMaxScalerModelInfoBatchOp
        VectorMinMaxScalerPredictBatchOp VectorMinMaxScalerPredictStreamOp VectorMinMaxScalerTrainBatchOp
        VectorNormalizeBatchOp VectorNormalizeStreamOp VectorNormalizer VectorPolynomialExpand VectorPolynomialExpandBatchOp
        VectorPolynomialExpandStreamOp VectorSizeHint VectorSizeHintBatchOp VectorSizeHintStreamOp VectorSliceBatchOp
        VectorSliceStreamOp VectorSlicer VectorStandardScaler VectorStandardScalerModel VectorStandardScalerModelInfoBatchOp
        VectorStandardScalerPredictBatchOp VectorStandardScalerPredictStreamOp VectorStandardScalerTrainBatchOp
    """,
    "words": """
        DocCountVectorizer DocCountVectorizerModel DocCountVectorizerPredictBatchOp DocCountVectorizerPredictStreamOp
        DocCountVectorizerTrainBatchOp DocHashCountVectorizer DocHashCountVectorizerModel
        DocHashCountVectorizerPredictBatchOp DocHashCountVectorizerPredictStreamOp DocHashCountVectorizerTrainBatchOp
        DocWordCountBatchOp DocWordCountStreamOp KeywordsExtractionBatchOp KeywordsExtractionStreamOp NGram NGramBatchOp
        NGramStreamOp RegexTokenizer RegexTokenizerBatchOp RegexTokenizerStreamOp Segment SegmentBatchOp SegmentStreamOp
        StopWordsRemover StopWordsRemoverBatchOp StopWordsRemoverStreamOp TfidfBatchOp Tokenizer TokenizerBatchOp
        TokenizerStreamOp Word2Vec Word2VecModel Word2VecPredictBatchOp Word2VecPredictStreamOp Word2VecTrainBatchOp
        WordCountBatchOp
    """,
}
